import HearthModel
import HearthStorage

/// A change of the journal: what is to be done for a session that ends, kept so that it can be done after a crash, too.
public struct JournalChange: Sendable {
    /// Whose it is.
    public var session: String
    /// What is kept in place of anything before; nil to keep nothing any more.
    public var record: [UInt8]?

    public init(session: String, record: [UInt8]?) {
        self.session = session
        self.record = record
    }
}

extension TreeView {
    /// Everything that the journal keeps, by session.
    public func journal() throws(Status) -> [(session: String, record: [UInt8])] {
        var found: [(session: String, record: [UInt8])] = []
        let cursor = try snapshot.scan(
            .meta, KeyRange(prefix: TreeMeta.journalPrefix), reverse: false, values: true,
            dropping: TreeMeta.journalPrefix.count)
        defer { cursor.close() }
        while try cursor.next() { found.append((String(decoding: cursor.key, as: UTF8.self), cursor.value)) }
        return found
    }
}

/// Names in the keyspace `meta`.
///
///     version            the last commit's, in 8 bytes, big-endian
///     index/ID           an index, ID in 4 bytes, big-endian: its state (`TreeIndexState`) and its definition's text
///     next-index         the first ID that was never used, in 4 bytes, big-endian
///     journal/SESSION    what a session left to do, in its owner's form
enum TreeMeta {
    static let version = Array("version".utf8)
    static let nextIndex = Array("next-index".utf8)
    static let indexPrefix = Array("index/".utf8)
    static let journalPrefix = Array("journal/".utf8)

    static func journal(_ session: String) -> [UInt8] { journalPrefix + session.utf8 }

    static func encode(_ version: Int64) -> [UInt8] { withUnsafeBytes(of: version.bigEndian) { Array($0) } }
    static func encode(_ id: UInt32) -> [UInt8] { withUnsafeBytes(of: id.bigEndian) { Array($0) } }

    static func version(in snapshot: any Snapshot) throws(Status) -> Int64 {
        guard let bytes = try snapshot.get(.meta, version) else { return 0 }
        return Int64(bitPattern: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }

    static func id(_ bytes: some Sequence<UInt8>) -> UInt32 { bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
}
