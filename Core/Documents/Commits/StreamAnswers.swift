import HearthEngine
import HearthModel

/// The answers to the latest commits of each Write stream that can be resumed, stored in the transactions of those
/// commits.
///
///     "w"                                                time (8 bytes): streams were deleted whose last commit is older
///     "w" · stream (16)                                  number of the last commit (8) · its time (8) · owner
///     "w" · stream (16) · number mod 16 (1)              a `StoredAnswer`: number, fingerprint
///
/// The next commit of a stream has the number that follows the head's. A lower number is a repetition, and is answered
/// from the record. Any other commit changes nothing: it belongs to another history, or a later connection has
/// overtaken its own. To delete a stream, its head is deleted first, then its remaining answers.
///
/// Source: google.firestore.v1.WriteRequest, `stream_id` and `stream_token`.
enum StreamAnswers {
    static let prefix = Array("w".utf8)
    private static let slots = UInt64(Limits.streamAnswersMax)

    static func headKey(_ stream: [UInt8]) -> [UInt8] { prefix + stream }

    private static func slotKey(_ stream: [UInt8], _ number: UInt64) -> [UInt8] {
        prefix + stream + [UInt8(truncatingIfNeeded: number % slots)]
    }

    /// The stream of a head's key; nil for the key of something else.
    static func stream(ofHeadKey key: [UInt8]) -> [UInt8]? {
        key.count == prefix.count + StreamPosition.idBytes ? Array(key.dropFirst(prefix.count)) : nil
    }

    /// The stream of any key but that of the floor.
    static func stream(of key: [UInt8]) -> [UInt8] { Array(key.dropFirst(prefix.count).prefix(StreamPosition.idBytes)) }

    /// - Returns: whether a key is that of a piece of an answer.
    static func isPieceKey(_ key: [UInt8]) -> Bool {
        key.count == prefix.count + StreamPosition.idBytes + 1 + StoredAnswer.pieceKeyBytes
    }

    struct Head {
        var number: UInt64
        /// Of the last commit, in microseconds since 1970.
        var time: Int64
        var owner: [UInt8]

        init(number: UInt64, time: Int64, owner: [UInt8]) {
            self.number = number
            self.time = time
            self.owner = owner
        }

        /// - Throws: DATA_LOSS.
        init(_ bytes: [UInt8]) throws(Status) {
            time = StreamAnswers.time(ofHead: bytes)
            guard time >= 0 else { throw StreamAnswers.damaged }
            number = IndexValue.readBigEndian(bytes[...])
            guard number < .max / 2 else { throw StreamAnswers.damaged }
            owner = Array(bytes[16...])
        }

        var stored: [UInt8] {
            var bytes: [UInt8] = []
            IndexValue.appendBigEndian(number, to: &bytes)
            IndexValue.appendBigEndian(UInt64(bitPattern: time), to: &bytes)
            return bytes + owner
        }
    }

    /// The answer to a commit; nil when the record is of another one.
    private static func answer(to position: StreamPosition, in snapshot: any Snapshot) throws(Status) -> CommitOutcome?
    {
        let slot = slotKey(position.stream, position.number)
        guard try StoredAnswer.head(slot, in: snapshot) == answerHead(position) else { return nil }
        return try StoredAnswer.outcome(slot, in: snapshot)
    }

    private static func answerHead(_ position: StreamPosition) -> StoredAnswer.Head {
        StoredAnswer.Head(first: position.number, second: position.fingerprint)
    }

    static func head(of stream: [UInt8], in snapshot: any Snapshot) throws(Status) -> Head? {
        try headBytes(of: stream, in: snapshot).map { bytes throws(Status) in try Head(bytes) }
    }

    static func headBytes(of stream: [UInt8], in snapshot: any Snapshot) throws(Status) -> [UInt8]? {
        try snapshot.get(.meta, headKey(stream))
    }

    /// The time of the last commit; a time in the past for an unreadable head, which nobody can use.
    static func time(ofHead bytes: [UInt8]) -> Int64 {
        guard bytes.count >= 16 else { return .min }
        let time = Int64(bitPattern: IndexValue.readBigEndian(bytes[8...]))
        return (0...Timestamp.secondsMax * 1_000_000).contains(time) ? time : .min
    }

    /// The time before which streams were deleted.
    static func floor(in snapshot: any Snapshot) throws(Status) -> Int64 {
        guard let bytes = try snapshot.get(.meta, prefix), bytes.count == 8 else { return .min }
        return Int64(bitPattern: IndexValue.readBigEndian(bytes[...]))
    }

    /// The answer to a commit that was made already; nil when it is the next one of its stream.
    /// - Throws: ABORTED when it is neither, also when another commit was made under its number or the record cannot be
    ///   read: then no commit may be made. UNAVAILABLE when the store cannot be read.
    static func known(_ position: StreamPosition, in snapshot: any Snapshot) throws(Status) -> CommitOutcome? {
        do throws(Status) {
            guard let head = try head(of: position.stream, in: snapshot) else {
                if position.number == 1 { return nil }
                throw outOfOrder
            }
            guard head.owner == position.owner, position.number <= head.number + 1 else { throw outOfOrder }
            if position.number == head.number + 1 { return nil }
            guard let answer = try answer(to: position, in: snapshot) else { throw outOfOrder }
            return answer
        } catch {
            throw error.code == .dataLoss ? outOfOrder : error
        }
    }

    /// Notes a commit that is made in the same transaction.
    static func put(
        _ position: StreamPosition, _ outcome: CommitOutcome, in transaction: any StoreTransaction
    ) throws(Status) {
        let head = Head(number: position.number, time: outcome.commitTime.microseconds, owner: position.owner)
        try transaction.put(.meta, headKey(position.stream), head.stored)
        try StoredAnswer.put(
            slotKey(position.stream, position.number), answerHead(position), outcome,
            mayReplace: position.number >= slots, in: transaction)
    }

    // MARK: Commits that are undone

    /// The streams whose last commit was made after a time.
    static func streams(after time: Int64, in snapshot: any Snapshot) throws(Status) -> [[UInt8]] {
        var streams: [[UInt8]] = []
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: prefix), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            if let stream = stream(ofHeadKey: cursor.key), self.time(ofHead: cursor.value) > time {
                streams.append(stream)
            }
        }
        return streams
    }

    /// Takes a stream whose last commits were made after a time and undone back to the last one before, if its answer is stored.
    /// Otherwise the stream is deleted, and its client opens a new one.
    static func forget(
        _ stream: [UInt8], after time: Int64, in transaction: any StoreTransaction
    ) throws(Status) {
        if let head = try headBefore(time, stream, in: transaction) {
            try transaction.put(.meta, headKey(stream), head.stored)
        } else {
            try transaction.delete(.meta, KeyRange(prefix: headKey(stream)), limit: .max)
        }
    }

    /// Deletes the later answers.
    /// - Returns: nil when there is no earlier answer, or one can't be read: nobody can use the stream then.
    private static func headBefore(
        _ time: Int64, _ stream: [UInt8], in transaction: any StoreTransaction
    ) throws(Status) -> Head? {
        do throws(Status) {
            guard var head = try head(of: stream, in: transaction) else { return nil }
            let newest = head.number
            for number in (newest - min(newest, slots - 1)...newest).reversed() {
                let slot = slotKey(stream, number)
                guard try StoredAnswer.head(slot, in: transaction)?.first == number else { return nil }
                let made = try StoredAnswer.outcome(slot, in: transaction).commitTime.microseconds
                if made <= time {
                    (head.number, head.time) = (number, made)
                    return head
                }
                try StoredAnswer.delete(slot, in: transaction)
            }
            return nil
        } catch {
            if error.code != .dataLoss { throw error }
            return nil
        }
    }

    static let outOfOrder = Status(
        .aborted, "The write does not follow those that the stream has made. Open a new stream.")
    private static let damaged = Status(.dataLoss, "The answers of a Write stream cannot be read.")
}
