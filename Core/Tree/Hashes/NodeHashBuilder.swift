/// The hash (`Node.hash`) of a node that is received as events in the order of keys, without the node itself. Only the
/// open nodes are stored, and those of their children that have priorities.
package struct NodeHashBuilder {
    private struct Level {
        var key: TreeKey?
        var priority: Scalar?
        /// The beginning of its string, as far as that isn't digested.
        var start: Int
        /// Has digested the beginning of a long string.
        var digested: SHA1?
        /// Children with priorities: they come behind all that have none.
        var behind: [(key: TreeKey, priority: TreeIndexValue, hash: [UInt8])] = []
    }

    /// The bytes of a node's string that are stored before they are digested.
    private static let stringBytesMax = 1 << 16

    private let sha1 = SHA1()
    private var levels: [Level] = []
    /// Of all open nodes, one behind the other.
    private var string: [UInt8] = []
    /// Empty until the node has ended, and for an empty node.
    package private(set) var hash = ""
    private let numbers: HashedNumbers
    /// Whether the SDK for the web computes another hash (`HashedNumbers.web`). Found out with exact numbers.
    package private(set) var differsOnWeb = false

    package init(_ numbers: HashedNumbers = .exact) { self.numbers = numbers }

    private mutating func note(_ value: Scalar?) {
        if numbers == .exact, !differsOnWeb { differsOnWeb = HashedNumbers.differ(value) }
    }

    /// An inner node begins.
    /// - Parameter key: nil for the node whose hash is computed.
    package mutating func open(_ key: TreeKey?, priority: Scalar?) {
        note(priority)
        levels.append(Level(key: key, priority: priority, start: string.count))
        NodeEncoding.append(priority: priority, to: &string, numbers: numbers)
    }

    package mutating func leaf(_ key: TreeKey?, _ value: Scalar, priority: Scalar?) {
        note(priority)
        note(value)
        let start = string.count
        NodeEncoding.append(priority: priority, to: &string, numbers: numbers)
        NodeEncoding.append(value, to: &string, isQuoted: false, numbers: numbers)
        let digest = sha1.digest(of: string[start...])
        string.removeSubrange(start...)
        add(key, priority, digest)
    }

    /// The inner node that was opened last ends.
    package mutating func close() {
        guard var level = levels.popLast() else { preconditionFailure("a node ends without a beginning") }
        level.behind.sort { lhs, rhs in
            let order = TreeIndexValue.compare(lhs.priority, rhs.priority)
            return order != 0 ? order < 0 : lhs.key < rhs.key
        }
        for child in level.behind {
            appendChild(child.key)
            string.append(contentsOf: child.hash)
        }
        let digest: SHA1Digest
        if let digested = level.digested {
            digested.update(string[level.start...])
            digest = digested.end()
        } else {
            digest = sha1.digest(of: string[level.start...])
        }
        string.removeSubrange(level.start...)
        add(level.key, level.priority, digest)
    }

    private mutating func add(_ key: TreeKey?, _ priority: Scalar?, _ digest: SHA1Digest) {
        guard let key else {
            var hash: [UInt8] = []
            digest.appendBase64(to: &hash)
            self.hash = String(decoding: hash, as: UTF8.self)
            return
        }
        let last = levels.count - 1
        if let priority {
            var hash: [UInt8] = []
            digest.appendBase64(to: &hash)
            levels[last].behind.append((key, TreeIndexValue(priority), hash))
            return
        }
        appendChild(key)
        digest.appendBase64(to: &string)
        if string.count - levels[last].start > Self.stringBytesMax { digestText() }
    }

    private mutating func appendChild(_ key: TreeKey) {
        string.append(UInt8(ascii: ":"))
        string.append(contentsOf: key.string.utf8)
        string.append(UInt8(ascii: ":"))
    }

    /// Digests the string of the innermost open node so far.
    private mutating func digestText() {
        let last = levels.count - 1
        let digested = levels[last].digested ?? SHA1()
        if levels[last].digested == nil {
            digested.begin()
            levels[last].digested = digested
        }
        digested.update(string[levels[last].start...])
        string.removeSubrange(levels[last].start...)
    }
}
