import HearthEngine
import HearthModel

/// The answers to commits that have an id, stored in the transactions of those commits. A later commit with the same id
/// gets the answer of the first one.
///
///     "o" · 0 · time of the commit (8) · id      nothing: the ids in the order in which they expire
///     "o" · 1 · id · 0                           a `StoredAnswer`: time of the commit, fingerprint of the documents' names
///
/// Ids have no byte 0.
enum OnceAnswers {
    static let prefix = Array("o".utf8)
    private static let agePrefix = prefix + [0]
    private static let answerPrefix = prefix + [1]
    private static let ageKeyBytesMin = agePrefix.count + 8 + 1

    private static func answerKey(_ id: [UInt8]) -> [UInt8] { answerPrefix + id + [0] }

    private static func ageKey(_ time: Int64, _ id: [UInt8]) -> [UInt8] {
        var key = agePrefix
        IndexValue.appendBigEndian(UInt64(bitPattern: time), to: &key)
        return key + id
    }

    /// A hash of the names of the documents that a commit writes, in order: the answer has a result for each of them.
    static func fingerprint(_ writes: [Write]) -> UInt64 {
        var bytes: [UInt8] = []
        for write in writes { bytes += DocumentKey.encode(write.document.path) }
        return StreamPosition.fingerprint(bytes)
    }

    /// - Throws: FAILED_PRECONDITION when the commit with this id was one of other documents, DATA_LOSS when its answer
    ///   cannot be read.
    static func known(_ id: OnceID, _ documents: UInt64, in snapshot: any Snapshot) throws(Status) -> CommitOutcome? {
        let key = answerKey(id.bytes)
        guard let head = try StoredAnswer.head(key, in: snapshot) else { return nil }
        guard head.second == documents else {
            throw .failedPrecondition(
                "The id '\(String(decoding: id.bytes, as: UTF8.self))' was used for a commit of other documents.")
        }
        return try StoredAnswer.outcome(key, in: snapshot)
    }

    static func put(
        _ id: OnceID, _ documents: UInt64, _ outcome: CommitOutcome, in transaction: any StoreTransaction
    ) throws(Status) {
        let time = outcome.commitTime.microseconds
        try transaction.put(.meta, ageKey(time, id.bytes), [])
        try StoredAnswer.put(
            answerKey(id.bytes), StoredAnswer.Head(first: UInt64(bitPattern: time), second: documents), outcome,
            mayReplace: false, in: transaction)
    }

    // MARK: Expiry

    private static func ages(before time: Int64) -> KeyRange {
        let earliest = OnceLedger.earliest
        return KeyRange(lower: ageKey(earliest, []), upper: ageKey(max(earliest, time), []))
    }

    /// Whether there is an answer to a commit before a time.
    static func hasOld(before time: Int64, in snapshot: any Snapshot) throws(Status) -> Bool {
        try snapshot.count(.meta, ages(before: time), limit: 1) > 0
    }

    /// Deletes the oldest answers to commits before a time.
    /// - Returns: whether there may be more of them.
    static func deleteOld(before time: Int64, limit: Int, in transaction: any StoreTransaction) throws(Status) -> Bool {
        try delete(ages(before: time), limit: limit, in: transaction)
    }

    private static func delete(
        _ ages: KeyRange, limit: Int, in transaction: any StoreTransaction
    ) throws(Status) -> Bool {
        var keys: [[UInt8]] = []
        let cursor = try transaction.scan(.meta, ages, reverse: false, values: false)
        while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        cursor.close()
        for key in keys {
            try transaction.delete(.meta, key)
            try StoredAnswer.delete(answerKey(Array(key.dropFirst(agePrefix.count + 8))), in: transaction)
        }
        return keys.count == limit
    }

    /// Deletes answers to commits after a time, which were undone.
    /// - Returns: whether there may be more of them.
    static func forget(after time: Int64, limit: Int, in transaction: any StoreTransaction) throws(Status) -> Bool {
        var range = KeyRange(prefix: agePrefix)
        range.lower = ageKey(time + 1, [])
        return try delete(range, limit: limit, in: transaction)
    }

    // MARK: Check

    /// - Returns: what is wrong with a record; nil when nothing is.
    static func problem(_ key: [UInt8], in snapshot: any Snapshot) throws(Status) -> String? {
        if key.starts(with: agePrefix), key.count >= ageKeyBytesMin {
            let id = Array(key.dropFirst(agePrefix.count + 8))
            let time = IndexValue.readBigEndian(key.dropFirst(agePrefix.count))
            do throws(Status) {
                if try StoredAnswer.head(answerKey(id), in: snapshot)?.first == time {
                    _ = try StoredAnswer.outcome(answerKey(id), in: snapshot)
                    return nil
                }
            } catch {
                if error.code != .dataLoss { throw error }
            }
            return "the answer to the commit with the id '\(String(decoding: id, as: UTF8.self))' cannot be read"
        }
        // A first piece is read with the record of its age; without such a record it would never expire.
        let pieceBytes = StoredAnswer.pieceKeyBytes
        guard key.starts(with: answerPrefix), let end = key.dropFirst(answerPrefix.count).firstIndex(of: 0),
            end > answerPrefix.count, key.count == end + 1 + pieceBytes
        else { return "a record of the answers to commits is unknown" }
        let id = Array(key[answerPrefix.count..<end])
        guard let head = try? StoredAnswer.head(answerKey(id), in: snapshot),
            try snapshot.get(.meta, ageKey(Int64(bitPattern: head.first), id)) != nil
        else { return "a record of the answers to commits belongs to no commit" }
        return nil
    }
}
