import HearthModel
import HearthRules
import Synchronization

/// The security rules of all databases. Replaced as a whole, while requests go on with those that they began with.
public final class RulesRegistry: Sendable {
    private struct State {
        /// From the project's files, by database id; they hold in every project.
        var files: [String: Ruleset] = [:]
        /// Set over HTTP, by project; they hold in all of its databases.
        var projects: [String: Ruleset] = [:]
        var observers: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    public init() {}

    /// Whether nobody has said who may do what.
    var isEmpty: Bool { state.withLock { $0.files.isEmpty && $0.projects.isEmpty } }

    /// Nil when nothing is said of a database.
    func ruleset(of database: DatabaseName) -> Ruleset? {
        state.withLock { $0.projects[database.project] ?? $0.files[database.database] }
    }

    /// Has `observer` told of every later change, from any thread.
    func observe(_ observer: @escaping @Sendable () -> Void) {
        state.withLock { $0.observers.append(observer) }
    }

    public func setFile(_ ruleset: Ruleset, database: String) {
        change { $0.files[database] = ruleset }
    }

    func setProject(_ ruleset: Ruleset, project: String) {
        change { $0.projects[project] = ruleset }
    }

    func ruleset(ofProject project: String) -> Ruleset? {
        state.withLock { $0.projects[project] ?? $0.files[DatabaseName.defaultDatabase] }
    }

    private func change(_ body: (inout State) -> Void) {
        let observers = state.withLock { state in
            body(&state)
            return state.observers
        }
        for observer in observers { observer() }
    }
}
