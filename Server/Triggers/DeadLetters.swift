import HearthDocuments
import HearthEngine
import HearthModel

/// The events of one trigger in one database that were given up, stored with the data: with the states of the document,
/// because the change feed doesn't wait for them.
///
///     keyspace meta
///     key:   "z" · number of the trigger (4 bytes) · time of the end (8) · version of the commit (8) · key of the document
///     value: `DeadLetter`
///
/// Numbers are big-endian. Large records have a body: `EventBodies`.
package struct DeadLetters: Sendable {
    package struct Entry: Sendable, Equatable {
        /// When the event was given up, in microseconds since 1970.
        package let time: Int64
        package let event: Delivery.Event
    }

    private let prefix: [UInt8]
    private let bodies: EventBodies
    private static let mark = EventKeys.deadLetter

    /// So many of a trigger in a database are kept, and so long.
    package static let countMax = 10_000
    package static let keptMicroseconds: Int64 = 7 * 86_400 * 1_000_000

    /// - Parameter number: the trigger's, as in its queue.
    package init(trigger number: UInt32) {
        prefix = [Self.mark] + withUnsafeBytes(of: number.bigEndian) { Array($0) }
        bodies = EventBodies(trigger: number)
    }

    /// Those of all triggers.
    package static let all = KeyRange(prefix: [mark])

    private func key(_ entry: Entry) -> [UInt8] {
        var key = prefix
        key.reserveCapacity(prefix.count + 16 + entry.event.key.count)
        for number in [entry.time, entry.event.version] {
            withUnsafeBytes(of: number.bigEndian) { key.append(contentsOf: $0) }
        }
        return key + entry.event.key
    }

    private func entry(_ key: [UInt8]) throws(Status) -> Entry {
        let headBytes = prefix.count + 16
        guard key.count > headBytes else { throw Status(.dataLoss, "A record of a dead letter is too short.") }
        func number(_ offset: Int) -> Int64 {
            key.withUnsafeBytes { Int64(bigEndian: $0.loadUnaligned(fromByteOffset: offset, as: Int64.self)) }
        }
        return Entry(
            time: number(prefix.count),
            event: Delivery.Event(version: number(prefix.count + 8), key: Array(key[headBytes...])))
    }

    // MARK: Writing

    package func put(_ letter: DeadLetter, _ entry: Entry, in transaction: any StoreTransaction) throws(Status) {
        try transaction.put(.meta, key(entry), letter.bytes)
    }

    /// Deletes one, with its body.
    /// - Parameter keepsBody: whether that belongs to an event now.
    /// - Returns: the bytes of the record, about; nil when it is not there.
    func delete(
        _ entry: Entry, keepsBody: Bool = false, in transaction: any StoreTransaction
    ) throws(Status) -> Int? {
        let key = key(entry)
        var found: (sizeBytes: Int, body: EventBodies.Reference?)?
        _ = try transaction.read(.meta, key) { bytes throws(Status) in
            found = (bytes.count, DeadLetter.body(of: bytes))
        }
        guard let found else { return nil }
        try transaction.delete(.meta, key)
        guard let body = found.body else { return found.sizeBytes }
        if !keepsBody { try bodies.delete(body, in: transaction) }
        return body.sizeBytes
    }

    /// Deletes a part of what there is, the oldest first.
    /// - Parameters:
    ///   - time: only those that were given up before; nil for all.
    ///   - bytesMax: ends behind the one with which so many bytes were deleted.
    /// - Returns: how many there were, and whether there are no others.
    func delete(
        before time: Int64?, in transaction: any StoreTransaction, limit: Int, bytesMax: Int
    ) throws(Status) -> (count: Int, isDone: Bool) {
        let entries = try entries(after: nil, before: time, countMax: limit, in: transaction)
        var (count, sizeBytes) = (0, 0)
        for entry in entries {
            if sizeBytes >= bytesMax { return (count, false) }
            sizeBytes += try delete(entry, in: transaction) ?? 0
            count += 1
        }
        return (count, entries.count < limit)
    }

    // MARK: Reading

    /// The next ones, in the order of their ends.
    /// - Parameter time: only those that were given up before.
    package func entries(
        after entry: Entry?, before time: Int64? = nil, countMax: Int, in snapshot: any Snapshot
    ) throws(Status) -> [Entry] {
        // The time of a database that was just made is not believed, and what was kept long enough then may be before 1970, of
        // which the key would lie behind all others.
        if let time, time <= 0 { return [] }
        var range = KeyRange(prefix: prefix)
        if let entry { range.lower = key(entry) + [0] }
        if let time { range.upper = prefix + withUnsafeBytes(of: time.bigEndian) { Array($0) } }
        let cursor = try snapshot.scan(.meta, range, reverse: false, values: false)
        defer { cursor.close() }
        var entries: [Entry] = []
        while entries.count < countMax, try cursor.next() { entries.append(try self.entry(cursor.key)) }
        return entries
    }

    /// Calls `body` with each one, in the order of their ends, until it returns false.
    func forEach(
        in snapshot: any Snapshot, _ body: (Entry) throws(Status) -> Bool
    ) throws(Status) {
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: prefix), reverse: false, values: false)
        defer { cursor.close() }
        while try cursor.next() { if try !body(try entry(cursor.key)) { return } }
    }

    /// Nil when it is not there, or damaged.
    func readable(_ entry: Entry, in snapshot: any Snapshot) throws(Status) -> DeadLetter? {
        guard var letter = try head(entry, in: snapshot) else { return nil }
        guard let body = letter.body else { return letter }
        guard let record = try bodies.read(body, in: snapshot) else { return nil }
        letter.record = record
        return letter
    }

    /// The same without the record, if that has a body.
    func head(_ entry: Entry, in snapshot: any Snapshot) throws(Status) -> DeadLetter? {
        guard let bytes = try snapshot.get(.meta, key(entry)) else { return nil }
        do throws(Status) { return try DeadLetter(bytes) } catch { return nil }
    }

    func contains(_ entry: Entry, in snapshot: any Snapshot) throws(Status) -> Bool {
        try snapshot.read(.meta, key(entry)) { _ throws(Status) in }
    }

    /// Calls `body` with the body of each one, for the check of a store.
    func forEachBody(
        in snapshot: any Snapshot, _ body: (EventBodies.Reference) -> Void
    ) throws(Status) {
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: prefix), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            if let found = cursor.value.withUnsafeBytes({ DeadLetter.body(of: $0) }) { body(found) }
        }
    }

    package func count(in snapshot: any Snapshot) throws(Status) -> Int {
        try snapshot.count(.meta, KeyRange(prefix: prefix), limit: .max)
    }
}

/// An event that was given up.
///
///     format 1 byte (1) · attempts (4) · kind of the failure (1) · status (2) · size of the message (2) · message
///     · the record of the queue
///
/// With format 2 there is an `EventBodies.Reference` to the record instead. Numbers are big-endian.
package struct DeadLetter: Sendable, Equatable {
    /// Those that were answered.
    package let attempts: Int
    package let failure: DeliveryFailure
    /// That of the queue, with everything that the event is made of.
    var record: [UInt8]
    /// Where the record is, when it is too large for this one.
    var body: EventBodies.Reference?

    private static let format: UInt8 = 1
    private static let formatWithBody: UInt8 = 2
    private static let headBytes = 10
    private static let messageBytesMax = 1000

    init(attempts: Int, failure: DeliveryFailure, record: [UInt8]) {
        self.attempts = attempts
        self.failure = failure
        self.record = record
    }

    package var bytes: [UInt8] {
        var bytes = [body == nil ? Self.format : Self.formatWithBody]
        withUnsafeBytes(of: UInt32(clamping: attempts).bigEndian) { bytes += $0 }
        let (kind, status): (UInt8, Int) =
            switch failure.kind {
            case .status(let status): (0, status)
            case .timeout: (1, 0)
            case .cut: (2, 0)
            case .unreachable: (3, 0)
            }
        bytes.append(kind)
        withUnsafeBytes(of: UInt16(clamping: status).bigEndian) { bytes += $0 }
        // With the endpoint's words. A character that is cut is replaced when it is read.
        let message = Array(failure.message.utf8.prefix(Self.messageBytesMax))
        withUnsafeBytes(of: UInt16(message.count).bigEndian) { bytes += $0 }
        return bytes + message + (body?.bytes ?? record)
    }

    /// The body of a stored dead letter; nil for one that has none.
    static func body(of bytes: UnsafeRawBufferPointer) -> EventBodies.Reference? {
        bytes.first == formatWithBody ? EventBodies.Reference(bytes.suffix(EventBodies.Reference.storedBytes)) : nil
    }

    /// - Throws: DATA_LOSS for bytes that are no dead letter.
    init(_ bytes: [UInt8]) throws(Status) {
        func number(_ range: Range<Int>) -> Int { bytes[range].reduce(0) { $0 << 8 | Int($1) } }
        guard bytes.count >= Self.headBytes, [Self.format, Self.formatWithBody].contains(bytes[0]),
            case let end = Self.headBytes + number(8..<10), end <= bytes.count
        else { throw Self.damaged }
        let kind: DeliveryFailure.Kind
        switch bytes[5] {
        case 0: kind = .status(number(6..<8))
        case 1: kind = .timeout
        case 2: kind = .cut
        case 3: kind = .unreachable
        default: throw Self.damaged
        }
        attempts = number(1..<5)
        failure = DeliveryFailure(kind, String(decoding: bytes[Self.headBytes..<end], as: UTF8.self))
        record = bytes[0] == Self.format ? Array(bytes[end...]) : []
        if bytes[0] == Self.format { return }
        guard let body = EventBodies.Reference(bytes[end...]) else { throw Self.damaged }
        self.body = body
    }

    private static let damaged = Status(.dataLoss, "A record of a dead letter is damaged.")
}
