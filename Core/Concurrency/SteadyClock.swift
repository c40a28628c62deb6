import HearthModel
import Synchronization

/// The time of day, protected against wrong steps of the system's clock.
///
/// Commit versions only grow, so one wrong hour of the system's clock would mark a database forever. This clock
/// compares the time of day with the time that has passed since it was correct. While the two agree, it reports the
/// time of day. When the time of day steps, the clock continues as if there were no step. A step that lasts for some
/// minutes is accepted as a correction, except one far into the future: then the process must be restarted.
package final class SteadyClock: Clock {
    /// A change of the system's clock. Every event is reported once.
    package enum Event: Equatable, Sendable {
        /// The clock has stepped by this many microseconds; the step is not followed for now.
        case stepped(microseconds: Int64)
        /// The clock has returned to the expected time.
        case returned
        /// The step has lasted long enough, and is followed from now on.
        case followed(microseconds: Int64)
    }

    /// Differences below this are not steps, in microseconds.
    static let toleranceMicroseconds: Int64 = 2_000_000
    /// Seconds after which a step is followed: a small one, and others.
    static let smallStepSeconds: UInt64 = 60
    static let stepSeconds: UInt64 = 600
    static let smallStepMicrosecondsMax: Int64 = 3_600_000_000
    /// How far a step may lead beyond every accepted time. Machines are suspended for days, rarely for longer.
    static let forwardMicrosecondsMax: Int64 = 30 * 86_400 * 1_000_000

    private struct State {
        /// The step that is not followed, and the time since when it lasts.
        var step: (microseconds: Int64, sinceNanoseconds: UInt64)?
        /// The greatest accepted difference between time of day and passed time, in microseconds.
        var greatestOffset: Int64
    }

    private let source: any Clock
    private let passedNanoseconds: @Sendable () -> UInt64
    /// The accepted difference between time of day and passed time, in microseconds.
    private let offset: Atomic<Int64>
    private let state: Mutex<State>

    /// - Parameters:
    ///   - source: the system's clock.
    ///   - passedNanoseconds: continues while the machine sleeps, and never steps.
    package init(
        _ source: any Clock = SystemClock(),
        passedNanoseconds: @escaping @Sendable () -> UInt64 = { SystemClock().bootNanoseconds() }
    ) {
        self.source = source
        self.passedNanoseconds = passedNanoseconds
        let offset = source.now().microseconds - Int64(passedNanoseconds() / 1000)
        self.offset = Atomic(offset)
        state = Mutex(State(greatestOffset: offset))
    }

    package func now() -> Timestamp {
        let time = source.now()
        let steady = Int64(passedNanoseconds() / 1000) &+ offset.load(ordering: .relaxed)
        return abs(time.microseconds - steady) <= Self.toleranceMicroseconds ? time : Timestamp(microseconds: steady)
    }

    package func monotonicNanoseconds() -> UInt64 { source.monotonicNanoseconds() }

    /// Follows slow corrections of the clock, and checks for steps. Must be called several times a second.
    package func tick() -> Event? {
        let passed = passedNanoseconds()
        let present = source.now().microseconds - Int64(passed / 1000)
        let difference = present - offset.load(ordering: .relaxed)
        return state.withLock { state in
            if abs(difference) <= Self.toleranceMicroseconds {
                follow(present, &state)
                defer { state.step = nil }
                return state.step == nil ? nil : .returned
            }
            guard let step = state.step, abs(step.microseconds - difference) <= Self.toleranceMicroseconds else {
                state.step = (difference, passed)
                return .stepped(microseconds: difference)
            }
            let seconds = abs(difference) <= Self.smallStepMicrosecondsMax ? Self.smallStepSeconds : Self.stepSeconds
            if passed - step.sinceNanoseconds < seconds * 1_000_000_000 { return nil }
            if present - state.greatestOffset > Self.forwardMicrosecondsMax { return nil }
            follow(present, &state)
            state.step = nil
            return .followed(microseconds: difference)
        }
    }

    private func follow(_ present: Int64, _ state: inout State) {
        offset.store(present, ordering: .relaxed)
        state.greatestOffset = max(state.greatestOffset, present)
    }
}
