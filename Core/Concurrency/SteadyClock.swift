import HearthModel
import Synchronization

/// The time of day as far as it can be believed.
///
/// Versions of commits only grow, so one wrong hour of the system's clock would mark a database for ever. This clock
/// compares the time of day with the time that has passed since it was right: while the two go together, it tells the time of
/// day; when the time of day steps, it goes on as if nothing had happened. A step that stands for some minutes is
/// taken for a correction, except one that leads far into the future: then the process must be started again.
package final class SteadyClock: Clock {
    /// What happened to the system's clock. Every event is told once.
    package enum Event: Equatable, Sendable {
        /// It has stepped by so many microseconds, which aren't followed for now.
        case stepped(microseconds: Int64)
        /// It has come back.
        case returned
        /// The step has stood long enough, and is followed from now on.
        case followed(microseconds: Int64)
    }

    /// Differences that are no steps, in microseconds.
    static let toleranceMicroseconds: Int64 = 2_000_000
    /// Seconds after which a step is followed: a small one, and others.
    static let smallStepSeconds: UInt64 = 60
    static let stepSeconds: UInt64 = 600
    static let smallStepMicrosecondsMax: Int64 = 3_600_000_000
    /// How far a step may lead beyond all that was believed before: machines are suspended for days, hardly for longer.
    static let forwardMicrosecondsMax: Int64 = 30 * 86_400 * 1_000_000

    private struct State {
        /// The step that is not followed, and since when it stands.
        var step: (microseconds: Int64, sinceNanoseconds: UInt64)?
        /// The greatest difference between time of day and passed time that was believed, in microseconds.
        var greatestOffset: Int64
    }

    private let source: any Clock
    private let passedNanoseconds: @Sendable () -> UInt64
    /// The time of day less the passed time, in microseconds, as it is believed.
    private let offset: Atomic<Int64>
    private let state: Mutex<State>

    /// - Parameters:
    ///   - source: the system's clock.
    ///   - passedNanoseconds: goes on while the machine sleeps, and never steps.
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

    /// Follows what the clock's corrections do slowly, and looks for steps. To be called some times a second.
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

/// What is done when a database holds commits of the future, because the clock was or is wrong.
package enum ClockSkew {
    /// Seconds from which on it is worth a warning.
    static let warningSeconds: Int64 = 5
    /// Seconds from which on the database isn't opened, unless that is allowed.
    static let refusedSeconds: Int64 = 3600

    /// - Parameters:
    ///   - version: of the newest commit.
    ///   - isAllowed: opens the database all the same.
    /// - Returns: so many seconds lies the newest commit ahead of the clock, when that is worth a warning.
    /// - Throws: FAILED_PRECONDITION.
    package static func check(version: Int64, of name: DatabaseName, now: Timestamp, isAllowed: Bool) throws(Status)
        -> Int64?
    {
        let seconds = (version - now.microseconds) / 1_000_000
        if seconds >= refusedSeconds, !isAllowed {
            throw .failedPrecondition(
                "The newest commit of \(name) lies \(seconds) seconds ahead of this machine's clock. Set the clock, "
                    + "or start the server with --allow-clock-skew; see docs/reference/reliability.md.")
        }
        return seconds >= warningSeconds ? seconds : nil
    }
}
