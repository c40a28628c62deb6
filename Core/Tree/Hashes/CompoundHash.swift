import HearthModel

/// The hashes by which a client with much data lets the server find the parts that are stale.
///
/// The leaves of a tree, in the order of their keys and with each inner node's priority as a leaf `.priority` among its
/// children, are divided into ranges. A range ends with a leaf, whose path is listed, and has the hash of a string that
/// encodes its leaves; the last, empty hash is for the data behind the last path. Source: the public SDKs for Apple and
/// Android.
package struct CompoundHash: Hashable, Sendable {
    /// Of the last leaf of each range, ascending.
    package let paths: [TreePath]
    /// One more than paths.
    package let hashes: [String]

    /// Of a client's data.
    package init(of node: Node) {
        let size = Double(Self.estimatedSize(of: node))
        self.init(of: node, splittingOver: max(512, Int((size * 100).squareRoot())))
    }

    /// - Parameter length: a range ends with the leaf that makes its string longer, in UTF-16 code units.
    package init(of node: Node, splittingOver length: Int) {
        var paths: [TreePath] = []
        var hashes: [String] = []
        let sha1 = SHA1()
        var range = RangeString()
        LeafWalk.visit(node) { keys, leaf in
            range.add(leaf, at: keys)
            guard range.utf16Count > length, keys.last != .priority else { return }
            paths.append(TreePath(keys: keys))
            hashes.append(range.end(sha1))
        }
        if let keys = range.last {
            paths.append(TreePath(keys: keys))
            hashes.append(range.end(sha1))
        }
        self.paths = paths
        self.hashes = hashes + [""]
    }

    /// Whether a node is so large that its compound hash is worth sending.
    package static func isWorthwhile(for node: Node) -> Bool { estimatedSize(of: node) > 1024 }

    /// The approximate size of the node as JSON; both sides must compute the same, because ranges depend on it.
    static func estimatedSize(of node: Node) -> Int {
        guard let children = node.inner else {
            let size = estimatedSize(of: node.value)
            return if let priority = node.priority { 24 + size + estimatedSize(of: priority) } else { size }
        }
        var size = 1
        for (key, child) in children { size += key.string.utf16.count + 4 + estimatedSize(of: child) }
        if let priority = node.priority { size += TreeKey.priority.string.utf8.count + 4 + estimatedSize(of: priority) }
        return size
    }

    private static func estimatedSize(of value: Scalar?) -> Int {
        switch value {
        case nil, .bool: 4
        case .integer, .double: 8
        case .string(let string): 2 + string.utf16.count
        case .deferred: preconditionFailure("a deferred value has no hash")
        }
    }
}

extension CompoundHash {
    /// - Parameter wire: the object under `ch`.
    package init(wire: JSONValue) throws(TreeDataError) {
        guard let hashes = wire["hs"]?.array, let paths = wire["ps"]?.array, hashes.count == paths.count + 1,
            paths.count <= Limits.treeHashRangesMax
        else { throw Self.invalid }
        var known: [TreePath] = []
        for path in paths {
            guard let string = path.string else { throw Self.invalid }
            let path = try TreeLimits.standard.path(string, allowingPriority: true)
            if let last = known.last, TreePath.compare(last, path) >= 0 { throw Self.invalid }
            known.append(path)
        }
        var strings: [String] = []
        for hash in hashes {
            guard let string = hash.string else { throw Self.invalid }
            strings.append(string)
        }
        self.paths = known
        self.hashes = strings
    }

    private static let invalid = TreeDataError(
        "Invalid compound hash: it needs ascending paths ps and one hash hs more")

    package var wire: JSONValue {
        [
            "hs": .array(hashes.map { .string($0) }),
            "ps": .array(paths.map { .string($0.isRoot ? "/" : $0.string) }),
        ]
    }

    /// The ranges in which `node`, the server's data, differs from the client's data. Applied to that data one after
    /// another, they result in `node`.
    package func differences(from node: Node) -> [TreeRange] {
        let sha1 = SHA1()
        var own: [String] = []
        var range = RangeString()
        LeafWalk.visit(node) { keys, leaf in
            while own.count < paths.count, TreePath.compare(keys[...], paths[own.count].keys[...]) > 0 {
                own.append(range.end(sha1))
            }
            range.add(leaf, at: keys)
        }
        while own.count < hashes.count { own.append(range.end(sha1)) }

        var ranges: [(start: TreePath?, end: TreePath?)] = []
        var isOpen = false
        for (index, hash) in hashes.enumerated() {
            let isStale = !UTF8Order.equal(hash, own[index])
            if isStale {
                let end = index < paths.count ? paths[index] : nil
                if isOpen {
                    ranges[ranges.count - 1].end = end
                } else {
                    ranges.append((index > 0 ? paths[index - 1] : nil, end))
                }
            }
            isOpen = isStale
        }
        return ranges.map { TreeRange(of: node, after: $0.start, through: $0.end) }
    }
}

/// The string of a range of leaves: `("a":("b":(number:…),"c":(…)))`.
private struct RangeString {
    private var string: [UInt8] = []
    /// The keys of the leaf that was added last, which are still open.
    private(set) var last: [TreeKey]?
    /// Of the string so far, without the closing parentheses that follow.
    private(set) var utf16Count = 0

    mutating func add(_ leaf: Node, at keys: [TreeKey]) {
        var shared = 0
        if let last {
            while shared < last.count, shared < keys.count, last[shared] == keys[shared] { shared += 1 }
            close(last.count - shared)
            append(",")
        } else {
            append("(")
        }
        for key in keys[shared...] {
            let start = string.count
            NodeEncoding.appendQuoted(key.string, to: &string)
            string.append(contentsOf: ":(".utf8)
            count(from: start)
        }
        let start = string.count
        if let priority = leaf.priority {
            string.append(contentsOf: "priority:".utf8)
            NodeEncoding.append(priority, to: &string, isQuoted: true)
            string.append(UInt8(ascii: ":"))
        }
        if let value = leaf.value { NodeEncoding.append(value, to: &string, isQuoted: true) }
        count(from: start)
        last = keys
    }

    /// - Returns: the hash of the leaves since the last end; empty when there are none.
    mutating func end(_ sha1: SHA1) -> String {
        guard let last else { return "" }
        close(last.count + 1)
        var hash: [UInt8] = []
        sha1.digest(of: string[...]).appendBase64(to: &hash)
        self = RangeString()
        return String(decoding: hash, as: UTF8.self)
    }

    private mutating func append(_ byte: StaticString) {
        string.append(byte.utf8Start.pointee)
        utf16Count += 1
    }

    private mutating func close(_ count: Int) {
        for _ in 0..<count { append(")") }
    }

    /// A character is one unit, but two beyond U+FFFF, whose UTF-8 is four bytes.
    private mutating func count(from start: Int) {
        for byte in string[start...] where byte & 0xC0 != 0x80 { utf16Count += byte >= 0xF0 ? 2 : 1 }
    }
}
