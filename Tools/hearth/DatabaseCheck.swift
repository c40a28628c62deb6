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

    /// Nothing is repaired in a file that is damaged itself.
    private var isFileDamaged = false
    private var areCountsWrong = false
    /// Whether the counts of triggers' events were deleted, to be counted anew.
    var areCountsForgotten = false

    var isSound: Bool { report.isSound }
    var isRepairable: Bool { !isFileDamaged && (report.entryProblemCount > 0 || areCountsWrong) }

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
        return found + (try trees(in: folder, isRepairing: isRepairing))
    }

    /// The namespaces of the Realtime Database; there may be none.
    private static func trees(in folder: String, isRepairing: Bool) throws(Status) -> [DatabaseCheck] {
        let checks = try readTrees(in: folder, isRepairing: isRepairing)
        if !isRepairing || !checks.contains(where: \.isRepairable) { return checks }
        guard let provider = try Stores.realtime(in: folder, isReadOnly: false) else { return checks }
        for check in checks where check.isRepairable { try repair(tree: check.name, provider) }
        provider.close()
        let repaired = Set(checks.filter(\.isRepairable).map(\.name))
        return try readTrees(in: folder, isRepairing: isRepairing).map { check in
            var check = check
            check.areCountsForgotten = repaired.contains(check.name)
            return check
        }
    }

    private static func readTrees(in folder: String, isRepairing: Bool) throws(Status) -> [DatabaseCheck] {
        guard let provider = try Stores.realtime(in: folder, isReadOnly: true) else { return [] }
        defer { provider.close() }
        return try provider.databases().sorted { $0.description < $1.description }
            .map { DatabaseCheck(tree: $0, provider, isRepairing: isRepairing) }
    }

    init(tree name: DatabaseName, _ provider: any StoreProvider, isRepairing: Bool) {
        self.name = name
        isTree = true
        do throws(Status) {
            try look(atTree: try provider.open(name))
            noteDamage(isRepairing: isRepairing)
        } catch {
            fail(error)
        }
    }

    init(_ name: DatabaseName, _ provider: any StoreProvider, isRepairing: Bool) {
        self.name = name
        do throws(Status) {
            let store = try provider.open(name)
            defer { store.close() }
            try look(at: store, isRepairing: isRepairing)
        } catch {
            fail(error)
        }
    }

    private mutating func fail(_ error: Status) {
        remark = error.message
        // A file whose creation was interrupted has no data.
        if error.code != .notFound { report.problemCount += 1 }
    }

    mutating func look(at store: any Store, isRepairing: Bool) throws(Status) {
        let damage = try damage(of: store)
        report = try IntegrityCheck.run(store)
        if isRepairing, report.entryProblemCount > 0, !isFileDamaged {
            repair = try IndexRepair.run(store)
            report = try IntegrityCheck.run(store)
        }
        var counts = try counts(in: store)
        if isRepairing, areCountsWrong, !isFileDamaged {
            try Self.forgetCounts(in: store)
            areCountsForgotten = true
            counts = try self.counts(in: store)
        }
        add(counts, damage: damage)
        noteDamage(isRepairing: isRepairing)
    }

    /// Has the events of a namespace counted anew. A tree that is open for writing would go on with what it has begun, so
    /// this is done without one.
    /// - Parameter provider: no tree of it is open.
    static func repair(tree name: DatabaseName, _ provider: any StoreProvider) throws(Status) {
        let store = try provider.open(name)
        defer { store.close() }
        try forgetCounts(in: store)
    }

    private static func forgetCounts(in store: any Store) throws(Status) {
        try store.write { transaction throws(Status) in try TriggerCounts.forget(in: transaction) }
    }

    private mutating func noteDamage(isRepairing: Bool) {
        if isRepairing, isFileDamaged, report.entryProblemCount > 0 || areCountsWrong {
            remark = "The file itself is damaged, so nothing was repaired in it. Restore a backup."
        }
    }

    /// - Parameter store: closed afterwards.
    private mutating func look(atTree store: any Store) throws(Status) {
        let (damage, counts): ([String], [String])
        let database: TreeDatabase
        do throws(Status) {
            damage = try self.damage(of: store)
            counts = try self.counts(in: store)
            database = try TreeDatabase(name: name.database, store: store, clock: SystemClock())
        } catch {
            store.close()
            throw error
        }
        defer { database.close() }
        let view = try database.view()
        defer { view.close() }
        report.problems = try TreeIntegrityCheck.run(view, max: IntegrityCheck.problemsMax)
        report.problemCount = report.problems.count
        add(counts, damage: damage)
    }

    private mutating func damage(of store: any Store) throws(Status) -> [String] {
        notice = store.notice
        let damage = try store.damage(max: IntegrityCheck.problemsMax)
        isFileDamaged = !damage.isEmpty
        return damage
    }

    /// - Returns: what is wrong with triggers' events.
    private mutating func counts(in store: any Store) throws(Status) -> [String] {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let problems = try TriggerCounts.problems(in: snapshot)
        areCountsWrong = problems.areCountsWrong
        return problems.sentences
    }

    private mutating func add(_ counts: [String], damage: [String]) {
        report.problemCount += damage.count + counts.count
        report.problems = Array(
            (damage.map { "file: \($0)" } + report.problems + counts).prefix(IntegrityCheck.problemsMax))
    }
}
