import HearthModel
import HearthEngine

/// Names in the keyspace `meta`.
///
///     version            the last commit's, in 8 bytes, big-endian
///     index/ID           an index, ID in 4 bytes, big-endian: its state (`TreeIndexState`) and its definition
///     next-index         the first ID that was never used, in 4 bytes, big-endian
///     journal/SESSION, NUL, ENTRY    pending work of a session, in its owner's form
///     graft/…            a large write that is not in the tree yet (`TreeGraft`)
///
/// Names that begin with Q, p, q, z, y, a, r or s are those of a `TreeRecorder`.
enum TreeMeta {
    static let version = Array("version".utf8)
    static let nextIndex = Array("next-index".utf8)
    static let indexPrefix = Array("index/".utf8)
    static let journalPrefix = Array("journal/".utf8)

    /// The prefix of all entries of a session.
    static func journal(_ session: String) -> [UInt8] { journalPrefix + session.utf8 + [0] }

    static func encode(_ version: Int64) -> [UInt8] { withUnsafeBytes(of: version.bigEndian) { Array($0) } }
    static func encode(_ id: UInt32) -> [UInt8] { withUnsafeBytes(of: id.bigEndian) { Array($0) } }

    static func version(in snapshot: any Snapshot) throws(Status) -> Int64 {
        guard let bytes = try snapshot.get(.meta, version) else { return 0 }
        let time = Int64(bitPattern: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        // What comes after it must not overflow.
        guard bytes.count == 8, 0...Timestamp.microsecondsRange.upperBound ~= time else {
            throw Status(.dataLoss, "The record of the tree's last commit is damaged.")
        }
        return time
    }

    static func id(_ bytes: some Sequence<UInt8>) -> UInt32 { bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
}
