import HearthApp
import HearthTree

/// The child events that wait for an iterator, in order.
///
/// An event of a child refers to its siblings by their positions after all events before it. So only successive changes
/// of the data of one child can become one event: the earlier event keeps its position and gets the newer data.
final class WaitingChildEvents: Sendable {
    /// The most events that wait. Ours: an initial result of more children is larger than what the service returns to a
    /// listener (256 MB).
    static let countMax = 1 << 20

    static let tooMany = WireFailure(
        "too_slow", "The consumer of the child events is too slow: more events wait than the limit.")

    private struct State {
        /// Events before `first` are taken.
        var events: [EngineEvent] = []
        var first = 0
        /// The number of events that were removed from the front of `events`.
        var removed = 0
        /// The latest waiting event of each child, counted from the first event of all. Entries of taken events stay
        /// until the events leave `events`.
        var latest: [TreePath: Int] = [:]
        var isFull = false
    }

    private let state = Locked(State())
    private let countMax: Int

    init(countMax: Int = WaitingChildEvents.countMax) { self.countMax = countMax }

    /// The number of waiting events.
    var count: Int { state.with { $0.events.count - $0.first } }

    /// - Returns: false when the limit is exceeded: nothing waits from then on.
    func add(_ event: EngineEvent) -> Bool {
        state.with { state in
            if state.isFull { return false }
            if event.kind == .childChanged, let number = state.latest[event.path] {
                let index = number - state.removed
                if index >= state.first, state.events[index].kind == .childChanged {
                    state.events[index].node = event.node
                    return true
                }
            }
            if state.events.count - state.first >= countMax {
                state = State()
                state.isFull = true
                return false
            }
            state.latest[event.path] = state.removed + state.events.count
            state.events.append(event)
            return true
        }
    }

    func take() -> EngineEvent? {
        state.with { state in
            guard state.first < state.events.count else { return nil }
            let event = state.events[state.first]
            state.first += 1
            if state.first == state.events.count {
                state.removed += state.first
                state.events = []
                state.first = 0
                state.latest = [:]
            } else if state.first > state.events.count / 2, state.first >= 64 {
                for (index, taken) in state.events[..<state.first].enumerated()
                where state.latest[taken.path] == state.removed + index { state.latest[taken.path] = nil }
                state.events.removeFirst(state.first)
                state.removed += state.first
                state.first = 0
            }
            return event
        }
    }

    func clear() { state.with { $0 = State(isFull: $0.isFull) } }
}
