import HearthDocuments

/// The output for people.
enum CheckReport {
    /// The maximum number of printed problems per database.
    static let problemsMax = 20

    static func block(_ checks: [DatabaseCheck], folder: String) -> String {
        let sound = checks.filter(\.isSound).count
        let verdict =
            checks.isEmpty
            ? "no databases" : "\(count(checks.count, "database")), \(sound == checks.count ? "all" : "\(sound)") sound"
        return (["\(folder): \(verdict)", ""] + checks.flatMap(lines)).joined(separator: "\n")
    }

    private static func lines(_ check: DatabaseCheck) -> [String] {
        let report = check.report
        var lines = ["  \(check.isTree ? "Realtime Database" : check.name.project) \(check.name.database)"]
        if !check.isTree,
            report.documents + report.entries + report.feedRecords + report.tombstones > 0 || check.remark == nil
        {
            lines.append(
                "    \(count(report.documents, "document")), \(count(report.entries, "index entry", "index entries")), "
                    + "\(count(report.feedRecords, "feed record")), \(count(report.tombstones, "tombstone"))")
        }
        if let notice = check.notice { lines.append("    " + notice) }
        if let remark = check.remark { lines.append("    " + remark) }
        if let repair = check.repair {
            lines.append(
                "    repaired: \(count(repair.added, "index entry", "index entries")) added, \(repair.corrected) corrected, "
                    + "\(repair.removed) removed")
        }
        if check.areCountsForgotten {
            lines.append("    repaired: triggers' events are counted anew at the next start")
        }
        if report.isSound {
            lines.append("    sound")
        } else if !report.problems.isEmpty {
            lines.append("    \(count(report.problemCount, "problem")):")
            lines += report.problems.prefix(problemsMax).map { "      " + $0 }
            let more = report.problemCount - min(problemsMax, report.problems.count)
            if more > 0 { lines.append("      and \(more) more") }
        }
        return lines + [""]
    }

    static func count(_ number: Int, _ noun: String, _ plural: String? = nil) -> String {
        "\(number) \(number == 1 ? noun : plural ?? noun + "s")"
    }
}
