import HearthModel

/// Write streams that can be resumed; see `StreamAnswers`.
extension Database {
    /// The version of the newest commit, in microseconds since 1970: each commit of a stream that is opened now is newer.
    package var newestVersion: Int64 { commitClock.committed }

    /// Whether a stream can be resumed after one of its commits.
    /// - Parameters:
    ///   - number: that of the last commit whose answer the client has; 0 for none.
    ///   - openedAt: `newestVersion` when the stream was opened.
    /// - Throws: OUT_OF_RANGE when more commits came after it than answers are kept; RESOURCE_EXHAUSTED or UNAVAILABLE when the
    ///   store cannot be read now.
    package func canResume(
        stream: [UInt8], owner: [UInt8], after number: UInt64, openedAt: Int64
    ) throws(Status) -> Bool {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        do throws(Status) {
            guard let head = try StreamAnswers.head(of: stream, in: snapshot) else {
                // It has made nothing, or was deleted.
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

    /// Deletes streams whose last commit is old, or the oldest ones where all together are too large, a bounded number of records
    /// at a time. Does nothing while another call is under way.
    /// - Parameter completion: called with whether there is more to look at; on the writer's thread, or at once.
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
                    for stream in found.old {
                        // It may have made another commit meanwhile.
                        if try StreamAnswers.time(of: stream, in: transaction) >= step.before { continue }
                        try transaction.delete(.meta, StreamAnswers.headKey(stream))
                        for key in StreamAnswers.answerKeys(stream) { try transaction.delete(.meta, key) }
                    }
                    if try StreamAnswers.floor(in: transaction) < step.before {
                        var floor: [UInt8] = []
                        IndexValue.appendBigEndian(UInt64(bitPattern: step.before), to: &floor)
                        try transaction.put(.meta, StreamAnswers.prefix, floor)
                    }
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

    /// - Returns: the old streams, the bytes of the others by age, and the last key of the step; nil for the end of all.
    private func streams(
        _ step: StreamSweep.Step, recordsMax: Int
    ) throws(Status) -> (old: [[UInt8]], kept: StreamSweep.Ages, end: [UInt8]?) {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var range = KeyRange(prefix: StreamAnswers.prefix)
        range.lower = (step.after ?? StreamAnswers.prefix) + [0]
        let cursor = try snapshot.scan(.meta, range, reverse: false, values: true)
        defer { cursor.close() }
        var old: [[UInt8]] = []
        var kept = StreamSweep.Ages()
        // Of the stream whose records come next.
        var time = Int64.max
        var count = 0
        var end: [UInt8]?
        while try cursor.next() {
            if let stream = StreamAnswers.stream(ofHeadKey: cursor.key) {
                if count >= recordsMax { return (old, kept, end) }
                time = StreamAnswers.time(ofHead: cursor.value)
                if time < step.before { old.append(stream) }
            }
            if time >= step.before { kept.add(cursor.key.count + cursor.value.count, at: time) }
            count += 1
            end = cursor.key
        }
        return (old, kept, nil)
    }
}
