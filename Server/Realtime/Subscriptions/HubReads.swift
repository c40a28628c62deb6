import HearthModel
import HearthTree
import HearthTreeStorage

/// The remaining reads of the store that a group of commits may use to find the listeners that need no event. Belongs
/// to the writer's thread.
final class HubReads {
    private static let countMax = 1024
    /// The bytes of earlier data that may be compared.
    private static let bytesMax = 2 * Limits.realtimeCompareBytesMax
    /// The minimum cost of a comparison.
    private static let comparisonBytesMin = 1024

    private var countLeft = HubReads.countMax
    private var bytesLeft = HubReads.bytesMax

    /// The number of trie locations that were visited; for tests that count work.
    private(set) var visits = 0

    func visit() { visits += 1 }

    /// Begins a new group.
    func reset() {
        countLeft = Self.countMax
        bytesLeft = Self.bytesMax
    }

    /// - Returns: false when no read is left.
    func take(_ count: Int = 1) -> Bool {
        if countLeft < count { return false }
        countLeft -= count
        return true
    }

    /// The node at a location; nil when it is too large.
    func node(at path: TreePath, _ view: TreeView) throws(Status) -> Node? {
        let limit = min(bytesLeft, Limits.realtimeCompareBytesMax)
        if limit <= 0 { return nil }
        let size = try view.sizeEstimate(at: path, upTo: limit)
        bytesLeft -= max(size, Self.comparisonBytesMin)
        return size > limit ? nil : try view.node(at: path)
    }
}
