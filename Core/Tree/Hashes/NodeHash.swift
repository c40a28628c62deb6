/// The hash by which client and server compare their data: the SHA-1 of a string that encodes the node, in base64.
/// Source: the public SDKs.
extension Node {
    /// Of all data in the node, priorities too. Empty for an empty node.
    package var hash: String {
        var hasher = NodeHasher()
        return hasher.hash(self)
    }
}

/// Hashes nodes depth-first. Its string is a stack: a child's string is behind its parent's until its hash replaces it.
struct NodeHasher {
    /// The hash is stored of nodes with at least this number of leaves, and of all nodes with inner nodes below:
    /// smaller ones are computed again quickly.
    private static let cachedLeavesMin = 8

    private let sha1 = SHA1()
    private var string: [UInt8] = []

    mutating func hash(_ node: Node) -> String {
        if node.isEmpty { return "" }
        appendHash(node)
        let hash = String(decoding: string, as: UTF8.self)
        string.removeAll(keepingCapacity: true)
        return hash
    }

    private mutating func appendHash(_ node: Node) {
        // A node without children has no storage; with a priority it has another hash than its children alone.
        let storage = node.priority == nil ? node.inner?.storage : nil
        if let cached = storage?.cachedHash { return cached.digest.appendBase64(to: &string) }
        let start = string.count
        NodeEncoding.append(priority: node.priority, to: &string)
        var hasInner = false
        if let value = node.value {
            NodeEncoding.append(value, to: &string, isQuoted: false)
        } else {
            node.children.visitInOrderOfPriority { key, child in
                string.append(UInt8(ascii: ":"))
                string.append(contentsOf: key.string.utf8)
                string.append(UInt8(ascii: ":"))
                appendHash(child)
                if !child.isLeaf { hasInner = true }
            }
        }
        let digest = sha1.digest(of: string[start...])
        string.removeSubrange(start...)
        digest.appendBase64(to: &string)
        if let storage, hasInner || storage.count >= Self.cachedLeavesMin { storage.store(CachedHash(digest)) }
    }
}

extension Children {
    /// By priority, then by key.
    fileprivate func visitInOrderOfPriority(_ visit: (TreeKey, Node) -> Void) {
        if allSatisfy({ $0.node.priority == nil }) {
            for (key, node) in self { visit(key, node) }
        } else {
            for (key, node) in sorted(by: { TreeQuery.Index.priority.compare($0, $1) < 0 }) { visit(key, node) }
        }
    }
}
