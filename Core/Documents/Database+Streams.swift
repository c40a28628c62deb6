import HearthEngine
import HearthModel

/// Write streams that can be resumed; see `StreamAnswers`.
extension Database {
    /// The version of the newest commit, in microseconds since 1970: each commit of a stream that is opened now is
    /// newer.
    package var newestVersion: Int64 { commitClock.committed }

    /// Whether a stream can be resumed after one of its commits.
    /// - Parameters:
    ///   - number: the number of the last commit whose answer the client has; 0 for none.
    ///   - openedAt: `newestVersion` when the stream was opened.
    /// - Throws: OUT_OF_RANGE when more commits came after it than answers are kept; RESOURCE_EXHAUSTED or UNAVAILABLE
    ///   when the store cannot be read now.
    package func canResume(
        stream: [UInt8], owner: [UInt8], after number: UInt64, openedAt: Int64
    ) throws(Status) -> Bool {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        do throws(Status) {
            guard let head = try StreamAnswers.head(of: stream, in: snapshot) else {
                // The stream has made no commit, or was deleted.
                let floor = try StreamAnswers.floor(in: snapshot)
                return number == 0 && openedAt >= floor
            }
            guard head.owner == owner, head.number >= number else { return false }
            if head.number - number > UInt64(Limits.streamAnswersMax) {
                throw Status(
                    .outOfRange,
                    "The stream has made \(head.number - number) commits after its token; "
                        + "only \(Limits.streamAnswersMax) answers are kept.")
            }
            return true
        } catch {
            if error.code == .dataLoss { return false }
            throw error
        }
    }

    /// Deletes streams whose last commit is old. When all streams together are too large, also deletes the oldest
    /// streams of the largest owners. Handles a bounded number of records at a time. Does nothing while another call is
    /// under way.
    /// - Parameter completion: called with whether there is more to check; on the writer's thread, or at once.
    package func deleteOldStreams(
        recordsMax: Int = 2000, completion: @escaping @Sendable (Result<Bool, Status>) -> Void
    ) {
        guard let step = streamSweep.begin(newestVersion: newestVersion) else { return completion(.success(false)) }
        do throws(Status) {
            let found = try streams(step, recordsMax: recordsMax)
            if found.old.isEmpty {
                streamSweep.end(through: found.end, kept: found.kept)
                return completion(.success(found.end != nil))
            }
            pipeline.perform(
                { transaction throws(Status) in
                    var floor = try StreamAnswers.floor(in: transaction)
                    for (stream, keys) in found.old {
                        // The stream may have made another commit in the meantime.
                        if !step.isOld(try StreamAnswers.headBytes(of: stream, in: transaction)) { continue }
                        for key in keys { try transaction.delete(.meta, key) }
                        floor = max(floor, found.floor)
                    }
                    var bytes: [UInt8] = []
                    IndexValue.appendBigEndian(UInt64(bitPattern: floor), to: &bytes)
                    try transaction.put(.meta, StreamAnswers.prefix, bytes)
                },
                completion: { [streamSweep] result in
                    switch result {
                    case .success: streamSweep.end(through: found.end, kept: found.kept)
                    case .failure: streamSweep.fail()
                    }
                    completion(result.map { found.end != nil })
                })
        } catch {
            streamSweep.fail()
            completion(.failure(error))
        }
    }

    private struct FoundStreams {
        var old: [(stream: [UInt8], keys: [[UInt8]])] = []
        /// Above the times of the last commits of the old ones.
        var floor = Int64.min
        /// The bytes of the others.
        var kept = StreamSweep.Ages()
        /// The last key of the step; nil for the end of all.
        var end: [UInt8]?
    }

    private func streams(_ step: StreamSweep.Step, recordsMax: Int) throws(Status) -> FoundStreams {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var range = KeyRange(prefix: StreamAnswers.prefix)
        range.lower = (step.after ?? StreamAnswers.prefix) + [0]
        let cursor = try snapshot.scan(.meta, range, reverse: false, values: true)
        defer { cursor.close() }
        var found = FoundStreams()
        var stream: [UInt8] = []
        var head: [UInt8]?
        for _ in 0..<recordsMax {
            guard try cursor.next() else {
                found.end = nil
                return found
            }
            let key = cursor.key
            found.end = key
            if StreamAnswers.stream(of: key) != stream || StreamAnswers.stream(ofHeadKey: key) != nil {
                stream = StreamAnswers.stream(of: key)
                let isHead = StreamAnswers.stream(ofHeadKey: key) != nil
                head = isHead ? cursor.value : try StreamAnswers.headBytes(of: stream, in: snapshot)
                if step.isOld(head) {
                    found.old.append((stream, []))
                    if let time = head.map(StreamAnswers.time(ofHead:)), time > found.floor { found.floor = time + 1 }
                }
            }
            if step.isOld(head) {
                found.old[found.old.count - 1].keys.append(key)
            } else if let head {
                found.kept.add(key.count + cursor.value.count, ofHead: head)
            }
        }
        return found
    }
}
