import HearthConcurrency
import HearthModel
import Synchronization

/// The state of the search for old Write streams. It checks all of them once an hour, some of them at a time.
final class StreamSweep: Sendable {
    /// Bytes of streams by shares of owners, and by the hour of their last commit.
    struct Ages: Sendable {
        private var bytes: [UInt8: [Int64: Int]] = [:]
        private static let hour: Int64 = 3_600_000_000

        /// An owner's share: most owners have one of their own.
        static func share(of owner: some Sequence<UInt8>) -> UInt8 {
            UInt8(truncatingIfNeeded: StreamPosition.fingerprint(Array(owner)) >> 24)
        }

        mutating func add(_ count: Int, ofHead head: [UInt8]) {
            add(count, share: Self.share(of: head.dropFirst(16)), at: StreamAnswers.time(ofHead: head))
        }

        mutating func add(_ count: Int, share: UInt8, at time: Int64) {
            bytes[share, default: [:]][time / Self.hour, default: 0] += count
        }

        mutating func add(_ other: Ages) {
            for (share, hours) in other.bytes { bytes[share, default: [:]].merge(hours, uniquingKeysWith: +) }
        }

        /// The times from which on all streams together take at most so many bytes, each at the start of an hour. Only
        /// the largest shares have one, so that no owner loses streams because of what others store.
        func oldestKept(within bytesMax: Int) -> [UInt8: Int64] {
            var left = bytesMax
            var sizes = bytes.map { (share: $0.key, bytes: $0.value.values.reduce(0, +)) }.sorted {
                $0.bytes < $1.bytes
            }[...]
            while let first = sizes.first, first.bytes <= left / sizes.count {
                left -= first.bytes
                sizes.removeFirst()
            }
            var times: [UInt8: Int64] = [:]
            for (share, _) in sizes {
                var total = 0
                for (hour, count) in (bytes[share] ?? [:]).sorted(by: { $0.key > $1.key }) {
                    total += count
                    if total > left / sizes.count {
                        times[share] = (hour + 1) * Self.hour
                        break
                    }
                }
            }
            return times
        }
    }

    struct Step: Sendable {
        /// The key after which the search continues; nil for the first.
        var after: [UInt8]?
        /// Streams whose last commit is older than this, in microseconds since 1970, are deleted.
        var before: Int64
        /// Later times for some shares of owners.
        var beforeOfShare: [UInt8: Int64] = [:]

        /// - Parameter head: nil for a stream whose head is deleted.
        func isOld(_ head: [UInt8]?) -> Bool {
            guard let head else { return true }
            let time = StreamAnswers.time(ofHead: head)
            if time < before { return true }
            return beforeOfShare.isEmpty ? false : time < beforeOfShare[Ages.share(of: head.dropFirst(16))] ?? .min
        }
    }

    private struct State {
        var isUnderWay = false
        var after: [UInt8]?
        /// Monotonic seconds since the database was opened.
        var dueSeconds: UInt64 = 0
        /// The bytes of this pass.
        var ages = Ages()
        /// Older streams were too much in the last pass.
        var oldestKept: [UInt8: Int64] = [:]
    }

    private static let passSeconds: UInt64 = 3600
    private static let keptMicroseconds = Int64(Limits.streamAnswersSeconds) * 1_000_000

    private let clock: any Clock
    private let bytesMax: Int
    private let openedMicroseconds: Int64
    private let openedNanoseconds: UInt64
    private let state = Mutex(State())

    /// - Parameter bytesMax: all streams together take at most this and the bytes of one hour.
    init(clock: any Clock, bytesMax: Int = Limits.streamAnswersBytesMax) {
        self.clock = clock
        self.bytesMax = bytesMax
        openedMicroseconds = clock.now().microseconds
        openedNanoseconds = clock.monotonicNanoseconds()
    }

    private var passedNanoseconds: UInt64 { clock.monotonicNanoseconds() - openedNanoseconds }

    /// Nil when no step is due, or one is under way. Each step is ended by `end` or `fail`.
    func begin(newestVersion: Int64) -> Step? {
        let passed = passedNanoseconds
        // Measured by elapsed time, not by a clock that is ahead: neither may delete new streams.
        let now = min(openedMicroseconds + Int64(passed / 1000), newestVersion)
        return state.withLock { state in
            if state.isUnderWay { return nil }
            guard state.after != nil || passed / 1_000_000_000 >= state.dueSeconds else { return nil }
            state.isUnderWay = true
            return Step(after: state.after, before: now - Self.keptMicroseconds, beforeOfShare: state.oldestKept)
        }
    }

    /// The step is repeated.
    func fail() { state.withLock { $0.isUnderWay = false } }

    /// - Parameters:
    ///   - end: the last key of the step; nil when that was the last step.
    ///   - kept: the bytes that the step has left.
    func end(through end: [UInt8]?, kept: Ages) {
        let passed = passedNanoseconds
        state.withLock { state in
            state.isUnderWay = false
            state.after = end
            state.ages.add(kept)
            guard end == nil else { return }
            let oldestKept = state.ages.oldestKept(within: bytesMax)
            state.ages = Ages()
            // Excess streams are deleted at once.
            if oldestKept.isEmpty || oldestKept == state.oldestKept {
                state.dueSeconds = passed / 1_000_000_000 + Self.passSeconds
            }
            state.oldestKept = oldestKept
        }
    }
}
