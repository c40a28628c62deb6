import HearthConcurrency
import HearthToolSupport
import Glibc
import HearthModel
import HearthSQLite
import HearthServer
import HearthEngine
import HearthDocuments
import HearthTreeStorage

/// `hearth check`
enum CheckCommand {
    static let command = ToolCommand(
        name: "check", summary: "Verify a data folder.", help: { help },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options: [Option] = [
        Option("data", "FOLDER", "Folder of the data. Default: the one that `hearth serve` would use here."),
        Option("repair", nil, "Rebuild index entries that disagree with their documents."),
    ]

    private static let help = """
        Usage: hearth check [options]

        Reads every database of a data folder that no server uses, and compares documents, index entries, the change
        feed and deletions with each other, the trees of the Realtime Database with their index entries, and the files
        with their own checksums and structure.

        \(OptionHelp.string(options))

        Nothing is changed without --repair. With it index entries are added, corrected and removed until they agree
        with the documents; documents and the feed are never changed. What is still wrong afterwards is listed: restore
        a backup then.

        Exit codes: 0 everything is sound (or was repaired), 1 there are problems, 64 wrong usage, 73 the data folder
        can't be used: it is none, a server uses it, its format is newer.
        """

    private static func run(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: options)
        let folder = try folder(parsed)
        let isRepairing = parsed.flag("repair")
        var storeOptions = SQLiteStoreOptions()
        storeOptions.isReadOnly = !isRepairing
        let results: [DatabaseCheck]
        do throws(Status) {
            let provider = try SQLiteStoreProvider(path: folder, options: storeOptions, createsFolder: false)
            let names = try provider.databases().sorted { $0.description < $1.description }
            var found: [DatabaseCheck] = []
            for name in names { found.append(DatabaseCheck(name, provider, isRepairing: isRepairing)) }
            found += try trees(Server.realtimeFolder(in: folder))
            results = found
        } catch {
            throw ToolFailure(.data, error.message)
        }
        Output.line(CheckReport.block(results, folder: StartMessage.absolute(folder) ?? folder))
        let failures = results.filter { !$0.isSound }
        if failures.isEmpty { return }
        let canRepair = !isRepairing && failures.contains { $0.isRepairable }
        throw ToolFailure(
            .failed,
            "\(failures.count) of \(CheckReport.count(results.count, "database")) "
                + (failures.count == 1 ? "has problems." : "have problems.")
                + (canRepair ? " `hearth check --repair` rebuilds index entries from documents." : ""))
    }

    /// The namespaces of the Realtime Database; there may be none.
    private static func trees(_ folder: String) throws(Status) -> [DatabaseCheck] {
        guard access(folder, F_OK) == 0 else { return [] }
        var options = SQLiteStoreOptions()
        options.isReadOnly = true
        let provider = try SQLiteStoreProvider(path: folder, options: options, createsFolder: false)
        return try provider.databases().sorted { $0.description < $1.description }
            .map { DatabaseCheck(tree: $0, provider) }
    }

    private static func folder(_ parsed: ParsedOptions) throws(ToolFailure) -> String {
        if let given = parsed.string("data") { return given }
        if let folder = try ServeResolution.settings([], environment: Environment.all).dataFolder { return folder }
        throw .usage("The settings here keep data in memory; name a folder with --data.")
    }
}

/// The result of one database's check and repair.
struct DatabaseCheck {
    let name: DatabaseName
    private(set) var report = IntegrityCheck.Report()
    private(set) var repair: IndexRepair.Report?
    /// Replaces the figures for a database that cannot be checked or has no data.
    private(set) var remark: String?

    var isSound: Bool { report.isSound }
    var isRepairable: Bool { report.entryProblemCount > 0 }

    /// Whether it is a namespace of the Realtime Database.
    private(set) var isTree = false

    init(_ name: DatabaseName) { self.name = name }

    init(tree name: DatabaseName, _ provider: SQLiteStoreProvider) {
        self.name = name
        isTree = true
        do throws(Status) {
            let store = try provider.open(name)
            let damage = try store.damage(max: IntegrityCheck.problemsMax)
            let database: TreeDatabase
            do throws(Status) {
                database = try TreeDatabase(name: name.database, store: store, clock: SystemClock())
            } catch {
                store.close()
                throw error
            }
            defer { database.close() }
            let view = try database.view()
            defer { view.close() }
            let problems = try TreeIntegrityCheck.run(view, max: IntegrityCheck.problemsMax)
            report.problems = Array((damage.map { "file: \($0)" } + problems).prefix(IntegrityCheck.problemsMax))
            report.problemCount = damage.count + problems.count
        } catch {
            remark = error.message
            // A file whose creation was interrupted has no data.
            if error.code != .notFound { report.problemCount += 1 }
        }
    }

    init(_ name: DatabaseName, _ provider: SQLiteStoreProvider, isRepairing: Bool) {
        self.name = name
        do throws(Status) {
            let store = try provider.open(name)
            defer { store.close() }
            try look(at: store, isRepairing: isRepairing)
        } catch {
            remark = error.message
            // A file whose creation was interrupted has no data.
            if error.code != .notFound { report.problemCount += 1 }
        }
    }

    mutating func look(at store: any Store, isRepairing: Bool) throws(Status) {
        let damage = try store.damage(max: IntegrityCheck.problemsMax)
        report = try IntegrityCheck.run(store)
        if isRepairing, report.entryProblemCount > 0 {
            if damage.isEmpty {
                repair = try IndexRepair.run(store)
                report = try IntegrityCheck.run(store)
            } else {
                remark = "The file itself is damaged, so nothing was repaired in it. Restore a backup."
            }
        }
        report.problemCount += damage.count
        report.problems = Array((damage.map { "file: \($0)" } + report.problems).prefix(IntegrityCheck.problemsMax))
    }
}

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
        if let remark = check.remark { lines.append("    " + remark) }
        if let repair = check.repair {
            lines.append(
                "    repaired: \(count(repair.added, "index entry", "index entries")) added, \(repair.corrected) corrected, "
                    + "\(repair.removed) removed")
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
