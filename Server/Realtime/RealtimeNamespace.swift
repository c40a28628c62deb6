import HearthConcurrency
import HearthModel
import HearthRules
import HearthTree
import HearthTreeStorage
import Synchronization

/// One tree of the Realtime Database with all that belongs to it.
final class RealtimeNamespace: Sendable {
    let name: String
    let database: TreeDatabase
    /// Tells listeners what changes.
    let hub: RealtimeHub
    /// Sockets and event streams.
    let users = RealtimeUsers()
    private let state: Mutex<State>

    private struct State {
        var rules: TreeRuleset?
        var observers: [@Sendable () -> Void] = []
        /// Sessions that have ended, whose last writes are in the journal and could not be made.
        var unfinished: Set<String> = []
    }

    /// - Parameter rules: nil when nobody has said who may do what.
    init(
        name: String, database: TreeDatabase, rules: TreeRuleset?, pool: WorkerPool,
        windows: MemoryBudget = ServerMemory().windows
    ) {
        self.name = name
        self.database = database
        hub = RealtimeHub(database, pool: pool, windows: windows)
        state = Mutex(State(rules: rules))
        let indexes = Self.indexes(of: rules)
        // Most have none, and then need no thread for it.
        if !indexes.isEmpty || database.hasIndexes { database.setIndexes(indexes) }
    }

    /// The rules in force; nil when nobody has said who may do what.
    var rules: TreeRuleset? { state.withLock { $0.rules } }

    func setRules(_ rules: TreeRuleset?) {
        database.setIndexes(Self.indexes(of: rules))
        let observers = state.withLock { state in
            state.rules = rules
            return state.observers
        }
        for observer in observers { observer() }
        users.rulesChanged()
    }

    /// Has `observer` told when other rules are in force, from any thread.
    func observeRules(_ observer: @escaping @Sendable () -> Void) {
        state.withLock { $0.observers.append(observer) }
    }

    /// What a session wanted written at its end could not be written now; the journal has it.
    func tryAgain(_ session: String) { state.withLock { _ = $0.unfinished.insert(session) } }

    func takeUnfinished() -> Set<String> {
        state.withLock { state in
            defer { state.unfinished = [] }
            return state.unfinished
        }
    }

    /// Whether queries at a place may be ordered by an index: those of children's values have to be declared.
    func hasIndex(_ index: TreeQuery.Index, at path: TreePath) -> Bool {
        switch index {
        case .key, .priority: true
        case .value, .child: rules?.hasIndex(index, at: path) ?? false
        }
    }

    private static func indexes(of rules: TreeRuleset?) -> [TreeIndexDefinition] {
        (rules?.indexDefinitions ?? []).flatMap { definition in
            definition.indexes.map { TreeIndexDefinition(pattern: definition.pattern, index: $0) }
        }
    }
}

extension RealtimeNamespace: Registered {
    var exists: Bool { database.exists }
    var isBusy: Bool { !users.isEmpty || database.isBusy }
    func close(because reason: Status) { database.close(because: reason) }
}

/// Names of namespaces, as they stand in host names and in `ns=`.
enum RealtimeName {
    /// Letters, digits, hyphens, and what old names of projects have; they become names of files.
    static func isValid(_ name: String) -> Bool {
        guard (1...Limits.realtimeNameBytesMax).contains(name.utf8.count) else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: ":"):
                true
            default: false
            }
        }
    }

    /// Of the database that each project has without asking for it.
    static func standard(ofProject project: String) -> String { project + "-default-rtdb" }

    private static let suffixes = [".firebaseio.com", ".firebasedatabase.app", ".localhost"]

    /// The first label of a host that has the shape of the service's (`NAME.firebaseio.com`,
    /// `NAME.REGION.firebasedatabase.app`) or stands below `localhost`; nil for all others.
    static func inHost(_ authority: String) -> String? {
        var host = authority.lowercased()
        if let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")) { host = String(host[..<colon]) }
        guard suffixes.contains(where: { host.hasSuffix($0) }), let dot = host.utf8.firstIndex(of: UInt8(ascii: "."))
        else { return nil }
        let name = String(host[..<dot])
        return name.isEmpty ? nil : name
    }
}
