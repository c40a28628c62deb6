import HearthModel
import HearthEngine

/// Ranges of the tree whose present records are in the staging area, because they are too large to be put to their
/// final keys in one transaction.
///
/// A large replacement has these steps. Its records are put into the staging area in slices, where no reader sees them;
/// after a crash they are garbage that the next start deletes. One small transaction then makes the graft: from then
/// on, each read or write of a key of these ranges uses the staging area (`GraftMap`). The old records are deleted in
/// slices, and the staged records are moved to their final keys in slices. None of these slices changes what a reader
/// sees: keys before the boundary have been moved, keys from it on are staged. At the end the graft is deleted.
///
/// A staged record has its whole key behind `04, ID`, in the same keyspace. Where there would be very many ranges, a
/// delta to the tree is staged instead (`TreeDelta`), and is moved into the tree in the same way.
///
///     graft/ranges   ID in 4 bytes; for each range its keyspace in a byte, the length of its prefix in 4 bytes, the prefix;
///                    or ID and FF for a delta, which programs that know only ranges report as damage
///     graft/moved    the boundary: its keyspace in a byte, its key
///     index/FFFFFFFF 00; while there is a graft. Programs that do not know grafts reject the tree because of it
final class TreeGraft: Sendable {
    struct Range: Sendable {
        var keyspace: Keyspace
        var prefix: [UInt8]
    }

    let id: UInt32
    /// The first bytes of staged keys.
    let prefix: [UInt8]
    /// By the keyspace's number, in the order of keys; they do not overlap.
    private let ranges: [[KeyRange]]
    private let encoded: [UInt8]
    /// The staged data, when it isn't ranges.
    let delta: TreeDelta?

    private static let deltaMark: UInt8 = 0xFF

    init(deltaOf id: UInt32) {
        self.id = id
        prefix = Self.prefix(id)
        ranges = []
        encoded = TreeMeta.encode(id) + [Self.deltaMark]
        delta = TreeDelta(id: id)
    }

    /// - Parameter ranges: none of which is in another.
    init(id: UInt32, ranges: [Range]) {
        self.id = id
        delta = nil
        prefix = Self.prefix(id)
        var sorted = Array(repeating: [KeyRange](), count: Keyspace.allCases.count)
        var encoded = TreeMeta.encode(id)
        for range in ranges {
            sorted[range.keyspace.rawValue].append(KeyRange(prefix: range.prefix))
            encoded.append(UInt8(range.keyspace.rawValue))
            encoded += TreeMeta.encode(UInt32(range.prefix.count)) + range.prefix
        }
        for index in sorted.indices { sorted[index].sort { UTF8Order.compare($0.lower, $1.lower) < 0 } }
        self.ranges = sorted
        self.encoded = encoded
    }

    static func prefix(_ id: UInt32) -> [UInt8] { [PathCode.Space.staged] + TreeMeta.encode(id) }

    func ranges(_ keyspace: Keyspace) -> [KeyRange] { ranges[keyspace.rawValue] }

    // MARK: Stored form

    static let rangesKey = Array("graft/ranges".utf8)
    static let movedKey = Array("graft/moved".utf8)
    static let markKey = TreeMeta.indexPrefix + TreeMeta.encode(UInt32.max)
    private static let damaged = Status(.dataLoss, "The record of a large write to the tree is damaged.")

    /// The graft that a store was closed with.
    static func load(_ snapshot: any Snapshot) throws(Status) -> TreeGraft? {
        guard let bytes = try snapshot.get(.meta, rangesKey) else { return nil }
        guard bytes.count >= 4 else { throw damaged }
        if bytes.count == 5, bytes[4] == deltaMark { return TreeGraft(deltaOf: TreeMeta.id(bytes)) }
        var ranges: [Range] = []
        var position = 4
        while position < bytes.count {
            guard bytes.count >= position + 5, let keyspace = Keyspace(rawValue: Int(bytes[position])) else {
                throw damaged
            }
            let end = position + 5 + Int(TreeMeta.id(bytes[(position + 1)...]))
            guard end <= bytes.count, end > position + 5 else { throw damaged }
            ranges.append(Range(keyspace: keyspace, prefix: Array(bytes[(position + 5)..<end])))
            position = end
        }
        return TreeGraft(id: TreeMeta.id(bytes), ranges: ranges)
    }

    /// The progress of the move; nil when there is no graft.
    static func boundary(_ snapshot: any Snapshot) throws(Status) -> GraftBoundary? {
        guard let bytes = try snapshot.get(.meta, movedKey) else { return nil }
        guard let first = bytes.first, let keyspace = Keyspace(rawValue: Int(first)) else { throw damaged }
        return GraftBoundary(keyspace: keyspace, key: Array(bytes.dropFirst()))
    }

    func begin(_ transaction: any StoreTransaction) throws(Status) -> GraftBoundary {
        try transaction.put(.meta, Self.rangesKey, encoded)
        try transaction.put(.meta, Self.markKey, [0])
        let boundary = GraftBoundary(keyspace: .documents, key: [])
        try Self.set(boundary, transaction)
        return boundary
    }

    static func set(_ boundary: GraftBoundary, _ transaction: any StoreTransaction) throws(Status) {
        try transaction.put(.meta, movedKey, [UInt8(boundary.keyspace.rawValue)] + boundary.key)
    }

    static func end(_ transaction: any StoreTransaction) throws(Status) {
        for key in [rangesKey, movedKey, markKey] { try transaction.delete(.meta, key) }
    }
}

/// The moved part: the keyspaces before this one, and of this one the keys before `key`.
struct GraftBoundary: Sendable {
    var keyspace: Keyspace
    var key: [UInt8]
}
