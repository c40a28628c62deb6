/// Collects the children of a node from JSON, where they are mostly in the order of their keys. They are put into
/// chunks as they arrive, so that a million of them are never copied, nor stored in one array that has grown to twice
/// their size.
struct ChildrenBuilder {
    private var chunks: [[Children.Element]] = []
    private var last: [Children.Element] = []
    private var lastKey: TreeKey?
    private var isInOrder = true

    /// Whether nothing was appended, not even an empty node.
    var isUntouched: Bool { lastKey == nil }

    mutating func append(_ key: TreeKey, _ node: Node) {
        if isInOrder, let lastKey, lastKey >= key { isInOrder = false }
        lastKey = key
        // Out of order an empty node may replace an earlier child with the same key.
        if isInOrder, node.isEmpty { return }
        last.append((key, node))
        guard last.count == ChildStorage.chunkCountFilled else { return }
        chunks.append(last)
        last = []
        last.reserveCapacity(ChildStorage.chunkCountFilled)
    }

    /// Of equal keys the last applies; empty children are omitted.
    consuming func children() -> Children {
        if !isInOrder { return Children(inAnyOrder: chunks.flatMap { $0 } + last) }
        if chunks.isEmpty { return Children(inOrder: last) }
        if !last.isEmpty { chunks.append(last) }
        return Children(chunks: chunks)
    }
}
