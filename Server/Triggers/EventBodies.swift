import HearthDocuments
import HearthEngine
import HearthModel

/// Records of a trigger that are too large for the rows of `meta`, in pieces. The row of an event or of a dead letter has a
/// `Reference` instead; each body belongs to one row, which may pass it on.
///
/// Rows are small because SQLite reads the whole of each row that it compares with a key that it looks for: beside a few
/// hundred rows of 1 MB, every look at `meta` would read ten of them.
///
///     keyspace meta
///     key:   "y" · number of the trigger (4 bytes) · number of the body (8) · number of the piece (4), from 0
///     value: a piece: `pieceBytes` but for the last
///
/// Numbers are big-endian.
package struct EventBodies: Sendable {
    struct Reference: Equatable, Sendable {
        /// No other body of the trigger has had it.
        let number: UInt64
        let sizeBytes: Int

        static let storedBytes = 12

        init(number: UInt64, sizeBytes: Int) {
            self.number = number
            self.sizeBytes = sizeBytes
        }

        init?(_ bytes: some Collection<UInt8>) {
            if bytes.count != Self.storedBytes { return nil }
            number = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            sizeBytes = bytes.dropFirst(8).reduce(0) { $0 << 8 | Int($1) }
        }

        var bytes: [UInt8] { EventBodies.bytes(number) + EventBodies.bytes(UInt32(sizeBytes)) }

        var pieceCount: Int { max(1, (sizeBytes + EventBodies.pieceBytes - 1) / EventBodies.pieceBytes) }
    }

    /// A larger record has a body.
    static let recordBytesMax = 700
    /// With the key less than a quarter of a page, beyond which a row has pages of its own.
    static let pieceBytes = 960

    private let prefix: [UInt8]
    private static let mark = EventKeys.body

    /// - Parameter number: the trigger's, as in its queue.
    package init(trigger number: UInt32) { prefix = [Self.mark] + Self.bytes(number) }

    /// Those of all triggers.
    static let all = KeyRange(prefix: [mark])
    /// Those of this one.
    var all: KeyRange { KeyRange(prefix: prefix) }

    private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    private func range(_ body: Reference) -> KeyRange { KeyRange(prefix: prefix + Self.bytes(body.number)) }

    func put(_ bytes: [UInt8], _ body: Reference, in transaction: any StoreTransaction) throws(Status) {
        let head = prefix + Self.bytes(body.number)
        for piece in 0..<body.pieceCount {
            let start = piece * Self.pieceBytes
            let end = min(bytes.count, start + Self.pieceBytes)
            try transaction.put(.meta, head + Self.bytes(UInt32(piece)), Array(bytes[start..<end]))
        }
    }

    func delete(_ body: Reference, in transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(.meta, range(body), limit: .max)
    }

    /// - Returns: nil when it is not there, or damaged.
    func read(_ body: Reference, in snapshot: any Snapshot) throws(Status) -> [UInt8]? {
        var bytes: [UInt8] = []
        // A reference may be damaged.
        bytes.reserveCapacity(min(body.sizeBytes, 16 << 20))
        let cursor = try snapshot.scan(.meta, range(body), reverse: false, values: true)
        defer { cursor.close() }
        while bytes.count <= body.sizeBytes, try cursor.next() {
            try cursor.withRow { _, piece throws(Status) in bytes += piece }
        }
        return bytes.count == body.sizeBytes ? bytes : nil
    }

    /// Whether its last piece is there. Reads only that.
    func contains(_ body: Reference, in snapshot: any Snapshot) throws(Status) -> Bool {
        let last = Self.bytes(UInt32(body.pieceCount - 1))
        let count = try snapshot.get(.meta, prefix + Self.bytes(body.number) + last)?.count
        return count == body.sizeBytes - (body.pieceCount - 1) * Self.pieceBytes
    }

    /// The first number that no body has.
    func nextNumber(in snapshot: any Snapshot) throws(Status) -> UInt64 {
        let cursor = try snapshot.scan(.meta, all, reverse: true, values: false)
        defer { cursor.close() }
        guard try cursor.next(), cursor.key.count == prefix.count + 12 else { return 1 }
        return cursor.key[prefix.count..<prefix.count + 8].reduce(0) { $0 << 8 | UInt64($1) } &+ 1
    }
}
