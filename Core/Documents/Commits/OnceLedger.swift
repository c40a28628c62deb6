import HearthEngine
import HearthModel

/// The creation times of the documents of one collection, the ledger, in their order: so that documents of a certain age
/// are found without a look at the others.
///
///     "l"                                                0 or 1, whether all documents are listed (1) · the collection's id
///     "l" · 0                                            the key up to which documents are listed, while not all are
///     "l" · 1 · version of the creation (8) · document key    nothing
///
/// From the moment that the first record exists, each commit that creates or deletes a document of the collection keeps
/// the others in its own transaction. Documents from before are listed in steps.
enum OnceLedger {
    static let key = Array("l".utf8)
    private static let listedKey = key + [0]
    private static let agePrefix = key + [1]

    /// The state of the records.
    struct State: Equatable, Sendable {
        var collection: String
        var isComplete: Bool

        /// The prefix of the keys of the collection's documents.
        var documents: [UInt8] { OnceLedger.prefix(of: collection) }
    }

    static func prefix(of collection: String) -> [UInt8] {
        DocumentKey.collectionPrefix(ResourcePath([collection]))
    }

    private static func ageKey(_ version: Int64, _ document: [UInt8]) -> [UInt8] {
        var key = agePrefix
        key.reserveCapacity(agePrefix.count + 8 + document.count)
        IndexValue.appendBigEndian(UInt64(bitPattern: version), to: &key)
        return key + document
    }

    static func state(in snapshot: any Snapshot) throws(Status) -> State? {
        guard let bytes = try snapshot.get(.meta, key), let first = bytes.first else { return nil }
        return State(collection: String(decoding: bytes.dropFirst(), as: UTF8.self), isComplete: first == 1)
    }

    private static func put(_ state: State, in transaction: any StoreTransaction) throws(Status) {
        try transaction.put(.meta, key, [state.isComplete ? 1 : 0] + Array(state.collection.utf8))
    }

    /// Keeps the records of the documents that a commit creates or deletes.
    /// - Parameter documents: the prefix of the collection's documents.
    static func keep(_ changes: [Change], of documents: [UInt8], in transaction: any StoreTransaction) throws(Status) {
        for change in changes where change.key.starts(with: documents) {
            let (before, after) = (change.before?.createVersion, change.after?.createVersion)
            if before == after { continue }
            if let before { try transaction.delete(.meta, ageKey(before, change.key)) }
            if let after { try transaction.put(.meta, ageKey(after, change.key), []) }
        }
    }

    // MARK: Listing

    /// Bytes of documents that a step reads.
    private static let listedBytesMax = 2 << 20

    /// Begins to keep the records of a collection.
    static func begin(_ collection: String, in transaction: any StoreTransaction) throws(Status) {
        try put(State(collection: collection, isComplete: false), in: transaction)
    }

    /// Lists documents from before.
    static func list(_ state: State, limit: Int, in transaction: any StoreTransaction) throws(Status) {
        var range = KeyRange(prefix: state.documents)
        if let last = try transaction.get(.meta, listedKey) { range.lower = last + [0] }
        var ages: [[UInt8]] = []
        var last: [UInt8]?
        var (count, bytes) = (0, 0)
        let cursor = try transaction.scan(.documents, range, reverse: false, values: true)
        while count < limit, bytes < listedBytesMax {
            guard try cursor.next() else {
                last = nil
                break
            }
            let (document, value) = (cursor.key, cursor.value)
            (last, count, bytes) = (document, count + 1, bytes + value.count)
            // A document that cannot be read keeps the others from nothing.
            if let stored = try? StoredDocument(stored: value) { ages.append(ageKey(stored.createVersion, document)) }
        }
        cursor.close()
        for age in ages { try transaction.put(.meta, age, []) }
        if let last {
            try transaction.put(.meta, listedKey, last)
        } else {
            try transaction.delete(.meta, listedKey)
            try put(State(collection: state.collection, isComplete: true), in: transaction)
        }
    }

    /// Deletes records, in the end also that of the state.
    /// - Returns: whether that is done.
    static func forget(limit: Int, in transaction: any StoreTransaction) throws(Status) -> Bool {
        // If the collection becomes the ledger again before that is done, its documents are listed again.
        if let state = try state(in: transaction) { try begin(state.collection, in: transaction) }
        try transaction.delete(.meta, listedKey)
        if try transaction.delete(.meta, KeyRange(prefix: agePrefix), limit: limit) == limit { return false }
        try transaction.delete(.meta, KeyRange(prefix: key), limit: .max)
        return true
    }

    // MARK: Expiry

    /// A commit with an earlier time (2020) was made before the machine's clock was set, so that nobody knows its age: what it
    /// made is kept.
    static let earliest: Int64 = 1_577_836_800_000_000

    /// A document that was created at a version, as far as its record says.
    struct Entry: Sendable {
        var document: [UInt8]
        var version: Int64
    }

    /// The documents that were created before a time, the oldest first.
    static func old(before time: Int64, limit: Int, in snapshot: any Snapshot) throws(Status) -> [Entry] {
        let range = KeyRange(lower: ageKey(earliest, []), upper: ageKey(max(earliest, time), []))
        let cursor = try snapshot.scan(.meta, range, reverse: false, values: false)
        defer { cursor.close() }
        var entries: [Entry] = []
        while entries.count < limit, try cursor.next() { if let entry = entry(cursor.key) { entries.append(entry) } }
        return entries
    }

    private static func entry(_ key: [UInt8]) -> Entry? {
        guard key.starts(with: agePrefix), key.count > agePrefix.count + 8 else { return nil }
        let version = Int64(bitPattern: IndexValue.readBigEndian(key.dropFirst(agePrefix.count)))
        return Entry(document: Array(key.dropFirst(agePrefix.count + 8)), version: version)
    }

    static func delete(_ entry: Entry, in transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(.meta, ageKey(entry.version, entry.document))
    }

    // MARK: Check

    /// - Returns: what is wrong with a record; nil when nothing is.
    static func problem(_ recordKey: [UInt8], in snapshot: any Snapshot) throws(Status) -> String? {
        guard let state = try state(in: snapshot) else { return "the state of the ledger is missing" }
        if recordKey == key || recordKey == listedKey { return nil }
        guard let entry = entry(recordKey) else { return "a record of the ledger is unknown" }
        guard entry.document.starts(with: state.documents),
            let stored = try snapshot.get(.documents, entry.document),
            (try? StoredDocument(stored: stored).createVersion) == entry.version
        else { return "a record of the ledger belongs to no document" }
        return nil
    }

    /// Whether a document of the ledger has its record, or need not have one.
    static func has(
        _ document: [UInt8], createdAt version: Int64, _ state: State?, in snapshot: any Snapshot
    ) throws(Status) -> Bool {
        guard let state, state.isComplete, document.starts(with: state.documents) else { return true }
        return try snapshot.get(.meta, ageKey(version, document)) != nil
    }
}
