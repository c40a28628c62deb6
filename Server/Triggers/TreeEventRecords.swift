import HearthEngine
import HearthEvents
import HearthModel

/// What events of a tree are made of, stored once for all triggers: the tree has no history.
///
///     keyspace meta
///     "s" · version of the commit (8) · path   `TreeEventRecord`, while an event of the commit and the location waits
///     "r" · version of the commit (8) · path   how many triggers' events wait for it (4), when they are more than one
///     "a" · version of the commit (8)          the author, when that is long; while one of the commit's events waits
///
/// A queue has `reference` for each event. Numbers are big-endian.
enum TreeEventRecords: EventRecords {
    static let queuesRecords = false

    /// What a queue has.
    static let reference: [UInt8] = [1]

    /// An author of more bytes is stored once for all events of a commit.
    private static let authorBytesMax = 64

    private static let recordMark = UInt8(ascii: "s")
    private static let countMark = UInt8(ascii: "r")
    private static let authorMark = UInt8(ascii: "a")

    private static func key(_ mark: UInt8, _ version: Int64, _ path: [UInt8] = []) -> [UInt8] {
        var key: [UInt8] = []
        key.reserveCapacity(9 + path.count)
        key.append(mark)
        withUnsafeBytes(of: version.bigEndian) { key.append(contentsOf: $0) }
        key += path
        return key
    }

    // MARK: On the writer's thread

    /// The form of an author for all records of a commit.
    static func put(
        author: [UInt8], version: Int64, in transaction: any StoreTransaction
    ) throws(Status) -> TreeEventRecord.Author {
        if author.count <= authorBytesMax { return .own(author) }
        try transaction.put(.meta, key(authorMark, version), author)
        return .ofCommit
    }

    /// - Parameter count: how many queues get a reference to it.
    static func put(
        _ record: TreeEventRecord, for event: Delivery.Event, count: Int, in transaction: any StoreTransaction
    ) throws(Status) {
        try transaction.put(.meta, key(recordMark, event.version, event.key), record.bytes)
        if count > 1 { try put(count: count, event, in: transaction) }
    }

    private static func put(
        count: Int, _ event: Delivery.Event, in transaction: any StoreTransaction
    ) throws(Status) {
        let bytes = withUnsafeBytes(of: UInt32(clamping: count).bigEndian) { Array($0) }
        try transaction.put(.meta, key(countMark, event.version, event.key), bytes)
    }

    /// How many queues refer to a record. A damaged count is the least that is stored: the settlement of an event must not fail, and a
    /// queue whose record is gone gives its event up.
    private static func count(_ bytes: [UInt8]) -> Int {
        bytes.count == 4 ? max(2, bytes.reduce(0) { $0 << 8 | Int($1) }) : 2
    }

    /// Deletes an event from a queue, and with the last reference what it refers to.
    /// - Returns: the bytes of what the queue has of it; nil when that has no such event.
    static func release(
        _ event: Delivery.Event, from queue: EventQueue, in transaction: any StoreTransaction
    ) throws(Status) -> Int? {
        guard let queuedBytes = try queue.remove(event, in: transaction) else { return nil }
        let countKey = key(countMark, event.version, event.key)
        if let bytes = try transaction.get(.meta, countKey) {
            let count = Self.count(bytes) - 1
            if count > 1 {
                try put(count: count, event, in: transaction)
            } else {
                try transaction.delete(.meta, countKey)
            }
            return queuedBytes
        }
        try transaction.delete(.meta, key(recordMark, event.version, event.key))
        let authorKey = key(authorMark, event.version)
        if try transaction.get(.meta, authorKey) != nil,
            try transaction.count(.meta, KeyRange(prefix: key(recordMark, event.version)), limit: 1) == 0
        {
            try transaction.delete(.meta, authorKey)
        }
        return queuedBytes
    }

    static func restore(
        _ stored: [UInt8], for event: Delivery.Event, in transaction: any StoreTransaction
    ) throws(Status) -> [UInt8] {
        let letter = try TreeDeadLetter(stored)
        let recordKey = key(recordMark, event.version, event.key)
        guard try transaction.get(.meta, recordKey) == nil else {
            // It waits for another trigger, too.
            let known = try transaction.get(.meta, key(countMark, event.version, event.key))
            try put(count: (known.map(Self.count) ?? 1) + 1, event, in: transaction)
            return reference
        }
        var record = letter.record
        record.author = try put(author: letter.author, version: event.version, in: transaction)
        try transaction.put(.meta, recordKey, record.bytes)
        return reference
    }

    // MARK: Reading

    /// - Throws: DATA_LOSS when a queue refers to what there is not.
    static func record(
        of event: Delivery.Event, in snapshot: any Snapshot
    ) throws(Status) -> (record: TreeEventRecord, author: EventAuthor) {
        guard let bytes = try snapshot.get(.meta, key(recordMark, event.version, event.key)) else {
            throw TreeEventRecord.damaged
        }
        let record = try TreeEventRecord(bytes)
        switch record.author {
        case .own(let author): return (record, EventAuthor(stored: author))
        case .ofCommit:
            guard let author = try snapshot.get(.meta, key(authorMark, event.version)) else {
                throw TreeEventRecord.damaged
            }
            return (record, EventAuthor(stored: author))
        }
    }
}

/// A change of a location's value as it is stored.
///
///     format 1 byte · kind of the change 1 · count of the author's bytes 1, FF for that of the commit · author · the rest
///
/// The rest is what `TreeEvent.appendData` appends (format 1), or a sentence why there is no event (format 2).
struct TreeEventRecord: Equatable {
    enum Author: Equatable {
        case own([UInt8])
        case ofCommit
    }

    enum Content: Equatable {
        case data([UInt8])
        /// It can never be sent.
        case fault(String)
    }

    var kind: ChangeKind
    var author: Author
    var content: Content

    private static let data: UInt8 = 1
    private static let fault: UInt8 = 2
    private static let ofCommit: UInt8 = 0xff
    private static let kinds: [ChangeKind] = [.created, .updated, .deleted]

    static let damaged = Status(.dataLoss, "A record of an event of the Realtime Database is damaged.")

    init(kind: ChangeKind, author: Author, content: Content) {
        self.kind = kind
        self.author = author
        self.content = content
    }

    var bytes: [UInt8] {
        let (format, rest) =
            switch content {
            case .data(let data): (Self.data, data)
            case .fault(let sentence): (Self.fault, Array(sentence.utf8))
            }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(3 + 64 + rest.count)
        bytes.append(format)
        bytes.append(UInt8(Self.kinds.firstIndex(of: kind) ?? 0))
        switch author {
        case .own(let author):
            bytes.append(UInt8(author.count))
            bytes += author
        case .ofCommit: bytes.append(Self.ofCommit)
        }
        bytes += rest
        return bytes
    }

    /// - Throws: DATA_LOSS for bytes that are no record.
    init(_ bytes: [UInt8]) throws(Status) {
        guard bytes.count >= 3, Int(bytes[1]) < Self.kinds.count else { throw Self.damaged }
        kind = Self.kinds[Int(bytes[1])]
        let end = bytes[2] == Self.ofCommit ? 3 : 3 + Int(bytes[2])
        guard end <= bytes.count else { throw Self.damaged }
        author = bytes[2] == Self.ofCommit ? .ofCommit : .own(Array(bytes[3..<end]))
        switch bytes[0] {
        case Self.data: content = .data(Array(bytes[end...]))
        case Self.fault: content = .fault(String(decoding: bytes[end...], as: UTF8.self))
        default: throw Self.damaged
        }
    }
}

/// What a dead letter has of an event: the record, and the author whatever its size.
///
///     count of the author's bytes (4, big-endian) · author · the record, whose own author has no meaning
struct TreeDeadLetter: Equatable {
    var record: TreeEventRecord
    var author: [UInt8]

    init(record: TreeEventRecord, author: [UInt8]) {
        self.record = record
        self.author = author
        self.record.author = .own([])
    }

    var bytes: [UInt8] { withUnsafeBytes(of: UInt32(author.count).bigEndian) { Array($0) } + author + record.bytes }

    /// - Throws: DATA_LOSS for bytes that are no record.
    init(_ bytes: [UInt8]) throws(Status) {
        let count = bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        guard bytes.count >= 4, count <= bytes.count - 4 else { throw TreeEventRecord.damaged }
        author = Array(bytes[4..<4 + count])
        record = try TreeEventRecord(Array(bytes[(4 + count)...]))
    }
}
