import HearthHost
import HearthConcurrency
import HearthModel
import HearthRules
import HearthTree
import HearthTreeStorage
import Synchronization

/// One tree of the Realtime Database with its rules, listeners and sessions.
package final class RealtimeNamespace: Sendable {
    package let name: String
    package let database: TreeDatabase
    /// Notifies listeners of changes.
    let hub: RealtimeHub
    /// Sockets and event streams.
    package let users = RealtimeUsers()
    private let state: Mutex<State>

    private struct State {
        var rules: TreeRuleset?
        /// Sessions that have ended, whose disconnect writes are in the journal and could not be made.
        var unfinished: Set<String> = []
    }

    /// - Parameter rules: nil when no rules are set.
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

    /// The rules in force; nil when none are set.
    var rules: TreeRuleset? { state.withLock { $0.rules } }

    package func setRules(_ rules: TreeRuleset?) {
        database.setIndexes(Self.indexes(of: rules))
        state.withLock { $0.rules = rules }
        users.rulesChanged()
    }

    /// A session's disconnect writes could not be made now; the journal contains them.
    func tryAgain(_ session: String) { state.withLock { _ = $0.unfinished.insert(session) } }

    func takeUnfinished() -> Set<String> {
        state.withLock { state in
            defer { state.unfinished = [] }
            return state.unfinished
        }
    }

    /// Whether queries at a location may use an index: indexes of children's values must be declared.
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
    package var exists: Bool { database.exists }
    package var isBusy: Bool { !users.isEmpty || database.isBusy }
    package func close(because reason: Status) { database.close(because: reason) }
}
