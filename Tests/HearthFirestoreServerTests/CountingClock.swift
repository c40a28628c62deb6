import HearthConcurrency
import HearthModel
import HearthNetwork
import Synchronization

/// Counts how often it is asked for the time of day. Rules read it once for each judgement.
final class CountingClock: Clock {
    private let system = SystemClock()
    private let loop = Mutex<EventLoop?>(nil)
    let asked = Atomic(0)
    /// Of these, since a loop is watched, those on it and those elsewhere.
    let askedOnLoop = Atomic(0)
    let askedElsewhere = Atomic(0)

    func watch(_ loop: EventLoop) { self.loop.withLock { $0 = loop } }

    func now() -> Timestamp {
        asked.add(1, ordering: .relaxed)
        if let loop = loop.withLock({ $0 }) {
            if loop.isCurrent {
                askedOnLoop.add(1, ordering: .relaxed)
            } else {
                askedElsewhere.add(1, ordering: .relaxed)
            }
        }
        return system.now()
    }

    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }
}
