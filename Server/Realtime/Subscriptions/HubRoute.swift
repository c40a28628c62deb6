import HearthModel
import HearthTree
import HearthTreeStorage

/// The changes of a commit that a location of the trie receives.
struct HubRoute {
    let location: HubLocation
    /// Of the changes at or below the location.
    var inside: [Int] = []
    /// Of the change above it.
    var above: Int?
    /// The value that this change sets here, when there is no other.
    var part: Node?
    /// Whether the value is known to be different.
    var isChanged = false
    /// The location's children that the changes touch; nil when they replace the location itself, or no window needs
    /// them.
    var children: TouchedChildren?

    /// The new value for the windows when a commit replaces the location itself, read once for all of them; nil when
    /// the value and the windows are so large that they are read beside the writer.
    func replacement(_ after: TreeView) throws(Status) -> Node? {
        let node: Node
        if let part {
            node = part
        } else {
            let bytesMax = Limits.realtimeCompareBytesMax
            if try after.sizeEstimate(at: location.path, upTo: bytesMax) > bytesMax { return nil }
            node = try after.node(at: location.path)
        }
        return node.childCount * location.windows.count > Self.replacedMax ? nil : node
    }

    /// The maximum number of children that are read for all windows of a replaced location.
    private static let replacedMax = 20_000
}
