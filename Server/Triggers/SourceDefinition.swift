import HearthConcurrency
import HearthDocuments
import HearthModel
import Synchronization

/// The definition by which a source makes its events, and the age from which on these are too old. A source lives on when the
/// definition of its trigger changes.
final class SourceDefinition: Sendable {
    private struct State {
        var definition: TriggerDefinition
        var horizon: HistoryHorizon
        /// The newest commit that is known, and its monotonic time.
        var newest: (version: Int64, nanoseconds: UInt64)
        /// Since the database was opened first; nil before.
        var elapsed: ElapsedTime?
    }

    private let state: Mutex<State>
    private let clock: any Clock

    init(_ definition: TriggerDefinition, clock: any Clock) {
        self.clock = clock
        state = Mutex(
            State(
                definition: definition, horizon: HistoryHorizon(clock: clock, keptSeconds: definition.maxAgeSeconds),
                newest: (0, clock.monotonicNanoseconds())))
    }

    var value: TriggerDefinition { state.withLock { $0.definition } }

    /// What is sent from now on has another form.
    func change(_ new: TriggerDefinition) {
        state.withLock { state in
            if state.definition.maxAgeSeconds != new.maxAgeSeconds {
                state.horizon = HistoryHorizon(clock: clock, keptSeconds: new.maxAgeSeconds)
            }
            state.definition = new
        }
    }

    /// The database is open.
    func note(newest: (version: Int64, nanoseconds: UInt64), _ elapsed: ElapsedTime) {
        state.withLock { state in
            state.newest = newest
            state.elapsed = state.elapsed ?? elapsed
        }
    }

    /// Events of commits before this version are too old.
    func expiredVersion() -> Int64 {
        let (horizon, newest, elapsed) = state.withLock { ($0.horizon, $0.newest, $0.elapsed) }
        return horizon.version(newest: newest, elapsed: elapsed)
    }
}

/// Whether a source's database can be read.
package enum SourceOpening<Open: Sendable>: Sendable {
    case open(Open)
    case opening
    case gone
}

/// The database of a source, which is kept open while something of it is read.
final class SourceAccess<Open: Sendable>: Sendable {
    private let open: @Sendable () -> SourceOpening<Open>
    private let current = Mutex<Open?>(nil)

    /// - Parameter open: the database if it is open; otherwise has it opened.
    init(_ open: @escaping @Sendable () -> SourceOpening<Open>) { self.open = open }

    /// - Parameter note: called with the database if it is open.
    func begin(_ note: (Open) -> Void) -> EventAccess {
        switch open() {
        case .gone: return .gone
        case .opening: return .opening
        case .open(let open):
            note(open)
            current.withLock { $0 = open }
            return .open
        }
    }

    func end() { current.withLock { $0 = nil } }

    /// - Throws: UNAVAILABLE outside of `begin` and `end`.
    func opened() throws(Status) -> Open {
        guard let open = current.withLock({ $0 }) else { throw .unavailable("The database is closed.") }
        return open
    }
}
