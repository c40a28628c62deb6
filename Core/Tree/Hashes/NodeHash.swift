/// The hash by which client and server find out whether they hold the same data: the SHA-1 of a text that says the node, in
/// base64. Source: rtdb-protocol §5.1, after the SDKs.
extension Node {
    /// Of what is in it, priorities too. Empty for an empty node.
    package var hash: String {
        var hasher = NodeHasher()
        return hasher.hash(self)
    }
}

/// Hashes nodes depth-first. Its text is a stack: a child's text stands behind its parent's until its hash takes its place.
struct NodeHasher {
    /// Of so many leaves and more the hash is kept, and of all nodes with inner nodes below: what is less is soon done again.
    private static let leavesKeptMin = 8

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
        if let kept = storage?.keptHash { return kept.digest.appendBase64(to: &string) }
        let start = string.count
        NodeText.append(priority: node.priority, to: &string)
        var hasInner = false
        if let value = node.value {
            NodeText.append(value, to: &string, isQuoted: false)
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
        if let storage, hasInner || storage.count >= Self.leavesKeptMin { storage.keep(KeptHash(digest)) }
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

/// How hashed texts say values.
enum NodeText {
    static func append(priority: Scalar?, to string: inout [UInt8]) {
        guard let priority else { return }
        string.append(contentsOf: "priority:".utf8)
        append(priority, to: &string, isQuoted: false)
        string.append(UInt8(ascii: ":"))
    }

    /// - Parameter isQuoted: whether a string stands in quotes, with `\` before `\` and `"`.
    static func append(_ value: Scalar, to string: inout [UInt8], isQuoted: Bool) {
        switch value {
        case .bool(let value): string.append(contentsOf: (value ? "boolean:true" : "boolean:false").utf8)
        case .integer(let value): append(Double(value), to: &string)
        case .double(let value): append(value, to: &string)
        case .string(let value):
            string.append(contentsOf: "string:".utf8)
            if isQuoted { appendQuoted(value, to: &string) } else { string.append(contentsOf: value.utf8) }
        case .deferred: preconditionFailure("a value that the server hasn't worked out has no hash")
        }
    }

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
