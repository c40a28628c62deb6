import HearthConcurrency
import HearthModel
import HearthEngine
import HearthDocuments
import HearthServer
import HearthTreeStorage
import HearthTriggers

/// The result of one database's check and repair.
struct DatabaseCheck {
    let name: DatabaseName
    private(set) var report = IntegrityCheck.Report()
    private(set) var repair: IndexRepair.Report?
    /// What the store says of itself that is no problem.
    private(set) var notice: String?
    /// Replaces the figures for a database that cannot be checked or has no data.
    private(set) var remark: String?

    var isSound: Bool { report.isSound }
    var isRepairable: Bool { report.entryProblemCount > 0 }

    /// Whether it is a namespace of the Realtime Database.
    private(set) var isTree = false

    init(_ name: DatabaseName) { self.name = name }

    /// Checks all databases and namespaces of a data folder.
    /// - Parameter hasDatabases: false when it is known that there are none of Firestore; else a folder without any is no
    ///   data folder.
    /// - Throws: when the folder can't be used.
    static func all(
        in folder: String, hasDatabases: Bool, isRepairing: Bool
    ) throws(Status) -> [DatabaseCheck] {
        var found: [DatabaseCheck] = []
        if hasDatabases {
            let provider = try Stores.firestore(in: folder, isReadOnly: !isRepairing)
            for name in try provider.databases().sorted(by: { $0.description < $1.description }) {
                found.append(DatabaseCheck(name, provider, isRepairing: isRepairing))
            }
        }
        // There may be none.
        guard let trees = try Stores.realtime(in: folder, isReadOnly: true) else { return found }
        return found
            + (try trees.databases().sorted { $0.description < $1.description }.map { DatabaseCheck(tree: $0, trees) })
    }

    init(tree name: DatabaseName, _ provider: any StoreProvider) {
        self.name = name
        isTree = true
        do throws(Status) {
            let store = try provider.open(name)
            notice = store.notice
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
            let problems =
                try TreeIntegrityCheck.run(view, max: IntegrityCheck.problemsMax)
                + TriggerCounts.problems(in: view.records)
            report.problems = Array((damage.map { "file: \($0)" } + problems).prefix(IntegrityCheck.problemsMax))
            report.problemCount = damage.count + problems.count
        } catch {
            remark = error.message
            // A file whose creation was interrupted has no data.
            if error.code != .notFound { report.problemCount += 1 }
        }
    }

    init(_ name: DatabaseName, _ provider: any StoreProvider, isRepairing: Bool) {
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

    /// Has the events of triggers counted anew, if that may help.
    private static func repairCounts(_ store: any Store) throws(Status) {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        if try TriggerCounts.problems(in: snapshot).isEmpty { return }
        try store.write { transaction throws(Status) in try TriggerCounts.forget(in: transaction) }
    }

    mutating func look(at store: any Store, isRepairing: Bool) throws(Status) {
        notice = store.notice
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
        if isRepairing, damage.isEmpty { try Self.repairCounts(store) }
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let counts = try TriggerCounts.problems(in: snapshot)
        report.problems += counts
        report.problemCount += damage.count + counts.count
        report.problems = Array((damage.map { "file: \($0)" } + report.problems).prefix(IntegrityCheck.problemsMax))
    }
}
