import HearthModel
import HearthEngine
import HearthTree

/// A walk over the children of a location that doesn't read the data below them.
///
/// A child costs one step, and one more search when it has children.
final class ChildWalk {
    private let cursor: any KeyCursor
    private let base: [UInt8]
    private let reverse: Bool
    /// The present child's bytes behind those of the location.
    private(set) var child: [UInt8] = []
    /// Whether the record that was found is the child's own. Upwards, a child without one is an inner node without a
    /// priority; downwards, one with it is a leaf.
    private(set) var isOwnRecord = false

    /// - Parameters:
    ///   - base: the location.
    ///   - range: of whole keys; nil for all children.
    init(_ base: [UInt8], in snapshot: any Snapshot, range: KeyRange? = nil, reverse: Bool = false) throws(Status) {
        self.base = base
        self.reverse = reverse
        cursor = try snapshot.scan(
            .entries, range ?? PathCode.below(base), reverse: reverse, values: true, dropping: base.count)
    }

    func close() { cursor.close() }

    /// The child's own record, if the walk has found it.
    var record: TreeRecord? {
        get throws(Status) { isOwnRecord ? try TreeRecord(stored: cursor.value) : nil }
    }

    var key: TreeKey { PathCode.key(child[...]) }

    /// The range of the child's records.
    var location: [UInt8] { base + child }

    func next() throws(Status) -> Bool {
        guard try cursor.next() else { return false }
        if !child.isEmpty, cursor.key.starts(with: child) {
            try cursor.seek(reverse ? base + child : PathCode.after(base + child))
            guard try cursor.next() else { return false }
            // Downwards, the search may end at the child's own record.
            if reverse, cursor.key.starts(with: child) {
                guard try cursor.next() else { return false }
            }
        }
        let key = cursor.key
        let end = try PathCode.end(of: key, from: 0)
        isOwnRecord = end == key.count
        child = isOwnRecord ? key : Array(key[..<end])
        return true
    }
}
