import HearthModel
import Synchronization

/// Write streams that can be resumed; see `StreamAnswers`.
extension Database {
    /// Whether a stream can be gone on with behind one of its commits.
    /// - Parameters:
    ///   - number: that of the last commit of which the client knows the answer; 0 for none.
    ///   - openedAt: when the stream was opened, in microseconds since 1970.
    /// - Throws: OUT_OF_RANGE when so many commits came after it that their answers aren't kept any more; UNAVAILABLE when the
    ///   store can't be read.
    package func canResume(
        stream: [UInt8], owner: [UInt8], after number: UInt64, openedAt: Int64
    ) throws(Status) -> Bool {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        guard let last = try StreamAnswers.last(of: stream, owner: owner, in: snapshot) else {
            // Nothing came of it yet, or it was forgotten.
            return number == 0 && openedAt > clock.now().microseconds - StreamAnswersSweep.keptMicroseconds
        }
        if last < number { return false }
        if last - number > StreamAnswers.keptMax {
            throw Status(
                .outOfRange,
                "The stream is \(last - number) commits beyond its token; only \(StreamAnswers.keptMax) answers are kept."
            )
        }
        return true
    }

    /// Deletes the answers of streams that are old, or the oldest ones where all together are too many, a bounded number of
    /// records at a time.
    /// - Parameter completion: called with whether there is more to look at.
    package func forgetStreamAnswers(
        recordsMax: Int = 2000, completion: @escaping @Sendable (Result<Bool, Status>) -> Void
    ) {
        guard let step = streamSweep.next() else { return completion(.success(false)) }
        do throws(Status) {
            let (old, kept, end) = try oldStreamAnswers(step, recordsMax: recordsMax)
            if old.isEmpty {
                streamSweep.done(through: end, kept: kept)
                return completion(.success(end != nil))
            }
            pipeline.perform(
                { transaction throws(Status) in
                    for key in old {
                        // It may have been written anew meanwhile.
                        if let value = try transaction.get(.meta, key), StreamAnswers.time(value) < step.before {
                            try transaction.delete(.meta, key)
                        }
                    }
                },
                completion: { [streamSweep] result in
                    if case .success = result { streamSweep.done(through: end, kept: kept) }
                    completion(result.map { end != nil })
                })
        } catch {
            completion(.failure(error))
        }
    }

    /// - Returns: the keys of old records, the bytes of the others by age, and the last key that was looked at; nil for the end.
    private func oldStreamAnswers(
        _ step: StreamAnswersSweep.Step, recordsMax: Int
    ) throws(Status) -> (old: [[UInt8]], kept: StreamAnswersSweep.Ages, end: [UInt8]?) {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var range = KeyRange(prefix: StreamAnswers.prefix)
        if let last = step.after { range.lower = last + [0] }
        let cursor = try snapshot.scan(.meta, range, reverse: false, values: true)
        defer { cursor.close() }
        var old: [[UInt8]] = []
        var kept = StreamAnswersSweep.Ages()
        for _ in 0..<recordsMax {
            guard try cursor.next() else { return (old, kept, nil) }
            let time = StreamAnswers.time(cursor.value)
            if time < step.before {
                old.append(cursor.key)
            } else {
                kept.add(cursor.key.count + cursor.value.count, at: time)
            }
        }
        return (old, kept, cursor.key)
    }
}

/// The state of the search for old answers: it looks at all records once an hour, at some of them at a time.
final class StreamAnswersSweep: Sendable {
    /// Bytes of records by the hour of their commits.
    struct Ages: Sendable {
        private var bytes: [Int64: Int] = [:]
        private static let hour: Int64 = 3_600_000_000

        mutating func add(_ count: Int, at time: Int64) { bytes[time / Self.hour, default: 0] += count }

        mutating func add(_ other: Ages) { bytes.merge(other.bytes, uniquingKeysWith: +) }

        /// The time from which on all records together take at most so many bytes; a whole hour at a time.
        func start(ofLatest bytesMax: Int) -> Int64 {
            var total = 0
            for (hour, count) in bytes.sorted(by: { $0.key > $1.key }) {
                total += count
                if total > bytesMax { return (hour + 1) * Self.hour }
            }
            return .min
        }
    }

    struct Step: Sendable {
        /// The key behind which it goes on; nil for the first.
        var after: [UInt8]?
        /// What is older than this, in microseconds since 1970, is forgotten.
        var before: Int64
    }

    private struct State {
        var after: [UInt8]?
        var passes = 0
        /// Those of this pass.
        var ages = Ages()
        /// What is older was too much in the last pass.
        var start = Int64.min
    }

    static let keptMicroseconds = Int64(Limits.streamAnswersSeconds) * 1_000_000

    private let clock: any Clock
    private let bytesMax: Int
    private let openedMicroseconds: Int64
    private let openedNanoseconds: UInt64
    private let state = Mutex(State())

    /// - Parameter bytesMax: all records together take at most this and what an hour brings.
    init(clock: any Clock, bytesMax: Int = Limits.streamAnswersBytesMax) {
        self.clock = clock
        self.bytesMax = bytesMax
        openedMicroseconds = clock.now().microseconds
        openedNanoseconds = clock.monotonicNanoseconds()
    }

    private static let passSeconds: UInt64 = 3600

    /// Nil when the next pass isn't due.
    func next() -> Step? {
        let passed = clock.monotonicNanoseconds() - openedNanoseconds
        return state.withLock { state in
            guard state.after != nil || passed / 1_000_000_000 >= UInt64(state.passes) * Self.passSeconds
            else { return nil }
            // By the time that has passed: a clock that is set must not expire anything.
            let old = openedMicroseconds + Int64(passed / 1000) - Self.keptMicroseconds
            return Step(after: state.after, before: max(old, state.start))
        }
    }

    /// - Parameters:
    ///   - end: the last key that was looked at; nil when that was all.
    ///   - kept: what this step has left.
    func done(through end: [UInt8]?, kept: Ages) {
        let passed = clock.monotonicNanoseconds() - openedNanoseconds
        state.withLock { state in
            state.after = end
            state.ages.add(kept)
            guard end == nil else { return }
            state.passes = Int(passed / 1_000_000_000 / Self.passSeconds) + 1
            state.start = state.ages.start(ofLatest: bytesMax)
            state.ages = Ages()
        }
    }
}
