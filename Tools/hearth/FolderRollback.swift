import Glibc
import HearthBackup
import HearthDocuments
import HearthModel
import HearthServer
import HearthToolSupport
import HearthTriggers
import HearthWire

/// Takes Firestore's databases in a folder that nobody else uses back to their states at a time.
struct FolderRollback {
    struct Report: Equatable {
        /// Of documents.
        var changes = 0
        /// Of triggers, with dead letters.
        var events = 0
        /// Databases whose first commit is later: they become empty.
        var later: [DatabaseName] = []
    }

    static func run(in folder: String, to time: RestoreTime) throws(ToolFailure) -> Report {
        let provider = try BackupCommand.data { () throws(Status) in
            try Stores.firestore(in: folder, isReadOnly: false)
        }
        defer { provider.close() }
        var names: [DatabaseName] = []
        try data(nil) { () throws(Status) in names = try provider.databases().sorted { $0.string < $1.string } }
        var coverages: [(name: DatabaseName, coverage: Rollback.Coverage)] = []
        for name in names {
            let coverage = try data(name) { () throws(Status) in
                let store = try provider.open(name)
                defer { store.close() }
                return try Rollback.coverage(of: store)
            }
            coverages.append((name, coverage))
        }
        try check(coverages, time)
        var report = Report(later: coverages.filter { ($0.coverage.first ?? 0) > time.microseconds }.map(\.name))
        for name in names {
            try data(name) { () throws(Status) in
                let store = try provider.open(name)
                defer { store.close() }
                report.events += try TriggerRollback.run(store, to: time.microseconds)
                report.changes += try Rollback.run(store, to: time.microseconds).undone
            }
        }
        return report
    }

    /// Refuses a time that the history of a database does not cover, and one before the first commit of all: a folder without a
    /// document would look like a restored one.
    private static func check(
        _ coverages: [(name: DatabaseName, coverage: Rollback.Coverage)], _ time: RestoreTime
    ) throws(ToolFailure) {
        if let latest = coverages.max(by: { $0.coverage.earliest < $1.coverage.earliest }),
            time.microseconds < latest.coverage.earliest
        {
            throw .usage(
                "The database \(latest.name.string) keeps no history of \(time). The earliest time for --at is "
                    + "\(RestoreTime(microseconds: latest.coverage.earliest)).")
        }
        let isKnown = coverages.contains { $0.coverage.earliest > 0 }
        if !isKnown, let first = coverages.compactMap(\.coverage.first).min(), time.microseconds < first {
            throw .usage(
                "No database had a document at \(time). The earliest time for --at is \(RestoreTime(microseconds: first)), "
                    + "that of the first commit.")
        }
    }

    /// - Parameter name: of the database that a message names.
    private static func data<Value>(
        _ name: DatabaseName?, _ body: () throws(Status) -> Value
    ) throws(ToolFailure) -> Value {
        do throws(Status) {
            return try body()
        } catch {
            throw ToolFailure(.data, (name.map { "\($0.string): " } ?? "") + error.message)
        }
    }
}

/// The value of `--at`.
struct RestoreTime: CustomStringConvertible {
    /// Since 1970. Versions have no finer digits.
    let microseconds: Int64

    init(microseconds: Int64) { self.microseconds = microseconds }

    init(_ string: String) throws(ToolFailure) {
        guard let parsed = RFC3339.parse(string),
            let time = Timestamp(seconds: parsed.seconds, nanoseconds: Int64(parsed.nanoseconds))
        else { throw .usage("--at expects a time such as 2026-01-31T12:30:00Z, not \"\(string)\".") }
        microseconds = time.microseconds
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        if microseconds > Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000 {
            throw .usage("--at \(string) is in the future.")
        }
    }

    /// A backup has all commits up to its start, and no later ones for sure.
    func check(_ manifest: BackupManifest) throws(ToolFailure) {
        guard let start = RFC3339.parse(manifest.started),
            let started = Timestamp(seconds: start.seconds, nanoseconds: Int64(start.nanoseconds))
        else {
            throw ToolFailure(.data, "\(BackupManifest.fileName): \"started\" is no time.")
        }
        if microseconds > started.microseconds {
            throw .usage("The backup was begun at \(manifest.started), and has no state of \(self).")
        }
    }

    var description: String {
        let time = Timestamp(microseconds: microseconds)
        return RFC3339.format(seconds: time.seconds, nanoseconds: Int32(time.nanoseconds))
    }
}
