import HearthModel
import HearthWire

/// The position of a commit in a Write stream that can be resumed. It tells a commit that is sent again, because its answer was
/// lost, from a new one.
package struct StreamPosition: Sendable, Equatable {
    /// The stream's random name, `idBytes` bytes.
    package var stream: [UInt8]
    /// Whose stream it is. A commit of another owner fails with ABORTED.
    package var owner: [UInt8]
    /// From 1, without gaps: one for each commit that was made.
    package var number: UInt64
    /// A hash of the request: a client that has lost its latest writes, with the power, sends others under their numbers.
    package var fingerprint: UInt64

    package static let idBytes = 16

    package init(stream: [UInt8], owner: [UInt8], number: UInt64, fingerprint: UInt64) {
        precondition(stream.count == Self.idBytes, "an id of \(stream.count) bytes")
        self.stream = stream
        self.owner = owner
        self.number = number
        self.fingerprint = fingerprint
    }

    /// FNV-1a.
    package static func fingerprint(_ bytes: [UInt8]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return hash
    }
}

/// The answers to the latest commits of each Write stream that can be resumed, each stored with its commit.
///
///     key:   "w" · stream (16 bytes) · number modulo `keptMax` (1 byte)
///     value: number (8 bytes) · time of the commit (8) · fingerprint (8) · length of the owner (4) · owner ·
///            google.firestore.v1.CommitResponse
///
/// So a stream has at most `keptMax` records. A commit is made only when the record of its predecessor exists: a commit of another
/// history, of a stream that was forgotten, or of a connection that a later one has overtaken changes nothing.
///
/// Source: google.firestore.v1.WriteRequest, `stream_id` and `stream_token`.
enum StreamAnswers {
    /// So many commits of a stream may be without an answer that the client has acknowledged.
    static let keptMax = UInt64(Limits.streamAnswersMax)

    static let prefix = Array("w".utf8)

    static func key(_ stream: [UInt8], _ number: UInt64) -> [UInt8] {
        prefix + stream + [UInt8(truncatingIfNeeded: number % keptMax)]
    }

    /// The time of the commit that a stored record is of; that of what is no record lies in the past.
    static func time(_ stored: [UInt8]) -> Int64 {
        stored.count < 16 ? .min : Int64(bitPattern: IndexValue.readBigEndian(stored[8...]))
    }

    struct Record {
        var number: UInt64
        var time: Int64
        var fingerprint: UInt64
        var owner: [UInt8]
        var answer: CommitResponse

        init(_ position: StreamPosition, _ outcome: CommitOutcome) {
            number = position.number
            owner = position.owner
            time = outcome.commitTime.microseconds
            fingerprint = position.fingerprint
            answer = CommitResponse(
                writeResults: outcome.results.map {
                    WriteResultMessage(
                        updateTime: $0.updateTime.map { TimestampMessage($0) }, transformResults: $0.transformResults)
                }, commitTime: TimestampMessage(outcome.commitTime))
        }

        private static let headBytes = 28

        /// - Throws: DATA_LOSS for what is no record.
        init(_ bytes: [UInt8]) throws(Status) {
            guard bytes.count >= Self.headBytes else { throw Self.damaged }
            number = IndexValue.readBigEndian(bytes[...])
            time = Int64(bitPattern: IndexValue.readBigEndian(bytes[8...]))
            fingerprint = IndexValue.readBigEndian(bytes[16...])
            let ownerBytes = bytes[24..<Self.headBytes].reduce(0) { $0 << 8 | Int($1) }
            guard bytes.count - Self.headBytes >= ownerBytes else { throw Self.damaged }
            let rest = bytes[Self.headBytes...]
            owner = Array(rest.prefix(ownerBytes))
            do throws(Status) {
                answer = try CommitResponse(protobuf: Array(rest.dropFirst(ownerBytes)))
            } catch {
                throw Self.damaged
            }
        }

        private static let damaged = Status(.dataLoss, "The answer to a commit of a stream can't be read.")

        var stored: [UInt8] {
            var bytes: [UInt8] = []
            for number in [number, UInt64(bitPattern: time), fingerprint] {
                IndexValue.appendBigEndian(number, to: &bytes)
            }
            for shift in stride(from: 24, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: owner.count >> shift))
            }
            return bytes + owner + answer.protobuf()
        }

        func outcome() throws(Status) -> CommitOutcome {
            var results: [WriteResult] = []
            for result in answer.writeResults {
                results.append(
                    WriteResult(
                        updateTime: try result.updateTime?.timestamp(), transformResults: result.transformResults))
            }
            return CommitOutcome(commitTime: Timestamp(microseconds: time), results: results)
        }
    }

    static func record(_ stream: [UInt8], _ number: UInt64, in snapshot: any Snapshot) throws(Status) -> Record? {
        try snapshot.get(.meta, key(stream, number)).map { bytes throws(Status) in try Record(bytes) }
    }

    /// The answer to a commit that was made already; nil when it is the next one of its stream.
    /// - Throws: ABORTED when it is neither, also when another commit was made under its number: nothing may be made then.
    static func known(_ position: StreamPosition, in snapshot: any Snapshot) throws(Status) -> CommitOutcome? {
        if let found = try record(position.stream, position.number, in: snapshot) {
            if found.owner != position.owner { throw lost }
            if found.number > position.number { throw lost }
            if found.number == position.number {
                if found.fingerprint != position.fingerprint { throw lost }
                return try found.outcome()
            }
        }
        if position.number > 1 {
            let last = try record(position.stream, position.number - 1, in: snapshot)
            guard let last, last.number == position.number - 1, last.owner == position.owner else { throw lost }
        }
        return nil
    }

    static let lost = Status(.aborted, "The write does not follow those that the stream has made. Open a new stream.")

    /// The number of the last commit of a stream; nil when nothing is known of it.
    static func last(
        of stream: [UInt8], owner: [UInt8], in snapshot: any Snapshot
    ) throws(Status) -> UInt64? {
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: prefix + stream), reverse: false, values: true)
        defer { cursor.close() }
        var last: UInt64?
        while try cursor.next() {
            let record = try Record(cursor.value)
            if record.owner == owner { last = max(last ?? 0, record.number) }
        }
        return last
    }
}
