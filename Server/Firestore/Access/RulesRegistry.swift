import HearthModel
import HearthRules
import Synchronization

/// The security rules of all databases. They are replaced as a whole; running requests continue with the rules that
/// they began with.
package final class RulesRegistry: Sendable {
    private struct State {
        /// From the project's files, by database id; they apply to every project.
        var files: [String: Ruleset] = [:]
        /// Set over HTTP by rules testing libraries, by project; they apply to all of its databases.
        var projects: [String: Measured] = [:]
        /// Databases for which a later release counts instead of those.
        var superseded: [String: Set<String>] = [:]
        /// What projects have released, by project and database.
        var decisions: [String: [String: Decision]] = [:]
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

    /// What a project has released for a database, instead of the rules file.
    enum Decision: Sendable {
        case rules(Ruleset)
        /// The release was deleted.
        case withoutRules

        var ruleset: Ruleset? {
            if case .rules(let ruleset) = self { ruleset } else { nil }
        }
    }

    /// Rules that allow nothing.
    static let denial: Ruleset = {
        let source = "service cloud.firestore { match /{document=**} { allow read, write: if false; } }"
        guard let ruleset = Ruleset.compile("rules_version = '2';\n\(source)\n").ruleset else {
            preconditionFailure("The rules that allow nothing do not compile.")
        }
        return ruleset
    }()

    private let state = Mutex(State())

    package init() {}

    /// Whether no rules are set.
    var isEmpty: Bool {
        state.withLock { state in
            state.files.isEmpty && state.projects.isEmpty
                && state.decisions.values.allSatisfy { $0.values.allSatisfy { $0.ruleset == nil } }
        }
    }

    /// Nil when no rules are set for a database.
    func ruleset(of database: DatabaseName) -> Ruleset? {
        state.withLock { state in
            if let tested = state.projects[database.project],
                state.superseded[database.project]?.contains(database.database) != true
            {
                return tested.ruleset
            }
            if let decision = state.decisions[database.project]?[database.database] { return decision.ruleset }
            return state.files[database.database]
        }
    }

    /// Notifies `observer` of every later change, from any thread.
    func observe(_ observer: @escaping @Sendable () -> Void) {
        state.withLock { $0.observers.append(observer) }
    }

    /// - Parameter informed: the projects whose decision about the database is newer than the file.
    package func setFile(_ ruleset: Ruleset, database: String, keeping informed: Set<String> = []) {
        change { state in
            state.files[database] = ruleset
            for project in Array(state.decisions.keys) where !informed.contains(project) {
                state.decisions[project]?[database] = nil
            }
        }
    }

    func setProject(_ ruleset: Ruleset, project: String) {
        change { state in
            state.projects[project] = Measured(ruleset)
            state.superseded[project] = nil
        }
    }

    /// Replaces all that a project has released.
    /// - Parameters:
    ///   - decisions: by database.
    ///   - database: counts also where a rules testing library has set rules before.
    func decide(
        _ decisions: [String: Decision], project: String, supersedingTestsOf database: String? = nil
    ) {
        change { state in
            state.decisions[project] = decisions.isEmpty ? nil : decisions
            if let database, state.projects[project] != nil {
                state.superseded[project, default: []].insert(database)
            }
        }
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
