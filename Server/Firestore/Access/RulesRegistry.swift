import HearthModel
import HearthRules
import Synchronization

/// The security rules of all databases. They are replaced as a whole; running requests continue with the rules that
/// they began with.
package final class RulesRegistry: Sendable {
    private struct State {
        /// From the project's files, by database id; they apply to every project.
        var files: [String: Ruleset] = [:]
        /// Set over HTTP, by project; they apply to all of its databases.
        var projects: [String: Measured] = [:]
        var observers: [@Sendable () -> Void] = []
    }

    /// Rules under development: the values of their expressions are counted.
    final class Measured: Sendable {
        let ruleset: Ruleset
        private let coverage: Mutex<RulesCoverage>

        init(_ ruleset: Ruleset) {
            self.ruleset = ruleset
            coverage = Mutex(RulesCoverage(ruleset))
        }

        func withCoverage<Result: Sendable>(_ body: (RulesCoverage) -> Result) -> Result {
            coverage.withLock { body($0) }
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// Whether no rules are set.
    var isEmpty: Bool { state.withLock { $0.files.isEmpty && $0.projects.isEmpty } }

    /// Nil when no rules are set for a database.
    func ruleset(of database: DatabaseName) -> Ruleset? {
        state.withLock { $0.projects[database.project]?.ruleset ?? $0.files[database.database] }
    }

    /// Notifies `observer` of every later change, from any thread.
    func observe(_ observer: @escaping @Sendable () -> Void) {
        state.withLock { $0.observers.append(observer) }
    }

    package func setFile(_ ruleset: Ruleset, database: String) {
        change { $0.files[database] = ruleset }
    }

    func setProject(_ ruleset: Ruleset, project: String) {
        change { $0.projects[project] = Measured(ruleset) }
    }

    /// Nil when the rules of a project were not set over HTTP.
    func measured(_ project: String) -> Measured? { state.withLock { $0.projects[project] } }

    private func change(_ body: (inout State) -> Void) {
        let observers = state.withLock { state in
            body(&state)
            return state.observers
        }
        for observer in observers { observer() }
    }
}
