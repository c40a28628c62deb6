import HearthEngine
import HearthModel
import HearthWire

/// The answer to a commit, stored in the commit's own transaction, so that a repetition of the commit gets it.
///
///     key · piece (3)     piece 0: two numbers (8 each) that identify the commit; then together the pieces of a
///                         google.firestore.v1.CommitResponse
///
/// The pieces are small: each read and commit searches `meta`, and a search that meets a large row reads all of it.
enum StoredAnswer {
    /// What identifies the commit; the owner of the key says what the numbers mean.
    struct Head: Equatable {
        var first: UInt64
        var second: UInt64
    }

    private static let headBytes = 16
    private static let pieceBytesMax = 800
    /// The bytes of a piece's key after the key of the answer.
    static let pieceKeyBytes = 3

    static func pieceKey(_ key: [UInt8], _ piece: Int) -> [UInt8] {
        key + [
            UInt8(truncatingIfNeeded: piece >> 16), UInt8(truncatingIfNeeded: piece >> 8),
            UInt8(truncatingIfNeeded: piece),
        ]
    }

    /// - Returns: nil when there is none.
    /// - Throws: DATA_LOSS when it cannot be read.
    static func head(_ key: [UInt8], in snapshot: any Snapshot) throws(Status) -> Head? {
        guard let piece = try snapshot.get(.meta, pieceKey(key, 0)) else { return nil }
        guard piece.count >= headBytes else { throw damaged }
        return Head(first: IndexValue.readBigEndian(piece[...]), second: IndexValue.readBigEndian(piece[8...]))
    }

    /// - Throws: DATA_LOSS when it cannot be read.
    static func outcome(_ key: [UInt8], in snapshot: any Snapshot) throws(Status) -> CommitOutcome {
        var bytes: [UInt8] = []
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: key), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() { bytes += cursor.value }
        do throws(Status) {
            return try outcome(of: try CommitResponse(protobuf: Array(bytes.dropFirst(headBytes))))
        } catch {
            throw damaged
        }
    }

    /// - Parameter mayReplace: whether there may be another answer at the key.
    static func put(
        _ key: [UInt8], _ head: Head, _ outcome: CommitOutcome, mayReplace: Bool, in transaction: any StoreTransaction
    ) throws(Status) {
        if mayReplace { try delete(key, in: transaction) }
        var bytes: [UInt8] = []
        IndexValue.appendBigEndian(head.first, to: &bytes)
        IndexValue.appendBigEndian(head.second, to: &bytes)
        bytes += response(of: outcome).protobuf()
        for (piece, start) in stride(from: 0, to: bytes.count, by: pieceBytesMax).enumerated() {
            let end = min(start + pieceBytesMax, bytes.count)
            try transaction.put(.meta, pieceKey(key, piece), Array(bytes[start..<end]))
        }
    }

    static func delete(_ key: [UInt8], in transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(.meta, KeyRange(prefix: key), limit: .max)
    }

    private static func response(of outcome: CommitOutcome) -> CommitResponse {
        CommitResponse(
            writeResults: outcome.results.map {
                WriteResultMessage(
                    updateTime: $0.updateTime.map { TimestampMessage($0) }, transformResults: $0.transformResults)
            }, commitTime: TimestampMessage(outcome.commitTime))
    }

    private static func outcome(of response: CommitResponse) throws(Status) -> CommitOutcome {
        guard let time = response.commitTime else { throw damaged }
        var results: [WriteResult] = []
        for result in response.writeResults {
            results.append(
                WriteResult(
                    updateTime: try result.updateTime?.timestamp(), transformResults: result.transformResults))
        }
        return CommitOutcome(commitTime: try time.timestamp(), results: results)
    }

    private static let damaged = Status(.dataLoss, "The stored answer to a commit cannot be read.")
}
