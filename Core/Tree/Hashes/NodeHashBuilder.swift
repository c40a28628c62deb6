/// The hash of a node that is told of in the order of keys (`Node.hash`), without the node: what is kept are the open nodes, and
/// of their children those with priorities.
package struct NodeHashBuilder {
    private struct Level {
        var key: TreeKey?
        var priority: Scalar?
        /// Where its text begins, as far as that isn't digested.
        var start: Int
        /// Has digested the beginning of a long text.
        var digested: SHA1?
        /// Children with priorities: they come behind all that have none.
        var behind: [(key: TreeKey, priority: TreeIndexValue, hash: [UInt8])] = []
    }

    /// Bytes of a node's text that are kept before they are digested.
    private static let textBytesMax = 1 << 16

    private let sha1 = SHA1()
    private var levels: [Level] = []
    /// Of all open nodes, one behind the other.
    private var text: [UInt8] = []
    /// Empty until the node is told to its end, and for an empty node.
    package private(set) var hash = ""

    package init() {}

    /// An inner node begins.
    /// - Parameter key: nil for the node whose hash is wanted.
    package mutating func open(_ key: TreeKey?, priority: Scalar?) {
        levels.append(Level(key: key, priority: priority, start: text.count))
        NodeText.append(priority: priority, to: &text)
    }

    package mutating func leaf(_ key: TreeKey?, _ value: Scalar, priority: Scalar?) {
        let start = text.count
        NodeText.append(priority: priority, to: &text)
        NodeText.append(value, to: &text, isQuoted: false)
        let digest = sha1.digest(of: text[start...])
        text.removeSubrange(start...)
        add(key, priority, digest)
    }

    /// The inner node that was opened last ends.
    package mutating func close() {
        guard var level = levels.popLast() else { preconditionFailure("what is closed was opened") }
        level.behind.sort { lhs, rhs in
            let order = TreeIndexValue.compare(lhs.priority, rhs.priority)
            return order != 0 ? order < 0 : lhs.key < rhs.key
        }
        for child in level.behind {
            appendChild(child.key)
            text.append(contentsOf: child.hash)
        }
        let digest: SHA1Digest
        if let digested = level.digested {
            digested.update(text[level.start...])
            digest = digested.end()
        } else {
            digest = sha1.digest(of: text[level.start...])
        }
        text.removeSubrange(level.start...)
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
        digest.appendBase64(to: &text)
        if text.count - levels[last].start > Self.textBytesMax { digestText() }
    }

    private mutating func appendChild(_ key: TreeKey) {
        text.append(UInt8(ascii: ":"))
        text.append(contentsOf: key.text.utf8)
        text.append(UInt8(ascii: ":"))
    }

    /// What the innermost open node has said so far is digested.
    private mutating func digestText() {
        let last = levels.count - 1
        let digested = levels[last].digested ?? SHA1()
        if levels[last].digested == nil {
            digested.begin()
            levels[last].digested = digested
        }
        digested.update(text[levels[last].start...])
        text.removeSubrange(levels[last].start...)
    }
}
