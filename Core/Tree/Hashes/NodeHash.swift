/// The hash by which client and server compare their data: the SHA-1 of a string that encodes the node, in base64.
/// Source: the public SDKs.
extension Node {
    /// Of all data in the node, priorities too. Empty for an empty node.
    @inlinable package var hash: String {
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

/// The encoding of values in hashed strings.
enum NodeEncoding {
    static func append(priority: Scalar?, to string: inout [UInt8]) {
        guard let priority else { return }
        string.append(contentsOf: "priority:".utf8)
        append(priority, to: &string, isQuoted: false)
        string.append(UInt8(ascii: ":"))
    }

    /// - Parameter isQuoted: whether a string is in quotes, with `\` before `\` and `"`.
    static func append(_ value: Scalar, to string: inout [UInt8], isQuoted: Bool) {
        switch value {
        case .bool(let value): string.append(contentsOf: (value ? "boolean:true" : "boolean:false").utf8)
        case .integer(let value): append(Double(value), to: &string)
        case .double(let value): append(value, to: &string)
        case .string(let value):
            string.append(contentsOf: "string:".utf8)
            if isQuoted { appendQuoted(value, to: &string) } else { string.append(contentsOf: value.utf8) }
        case .deferred: preconditionFailure("a deferred value has no hash")
        }
    }

    private static let hexadecimalDigits = Array("0123456789abcdef".utf8)

    private static func append(_ value: Double, to string: inout [UInt8]) {
        string.append(contentsOf: "number:".utf8)
        let bits = value.bitPattern
        for shift in stride(from: UInt64(60), through: 0, by: -4) {
            string.append(hexadecimalDigits[Int(bits >> shift & 15)])
        }
    }

    static func appendQuoted(_ string: String, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { output.append(UInt8(ascii: "\\")) }
            output.append(byte)
        }
        output.append(UInt8(ascii: "\""))
    }
}
