import HearthTree

/// A location in the tree before or after the write.
package struct TreeSnapshot: Sendable {
    /// Whether it shows the tree after the write.
    let isNew: Bool
    package private(set) var keys: [TreeKey]
    /// The number of keys beyond `keys`, starting with one that is not a valid key: nothing can exist here.
    private(set) var beyond = 0
    /// The node here, when it is already known.
    private(set) var node: Node?

    package init(isNew: Bool, keys: [TreeKey], node: Node? = nil) {
        self.isNew = isNew
        self.keys = keys
        self.node = node
    }

    var path: TreePath { TreePath(keys: keys) }
    /// Whether nothing can exist here.
    var isImpossible: Bool { beyond > 0 }

    /// - Parameter path: keys between slashes. `.` and `..` are ordinary, invalid keys.
    package func child(_ path: String) -> TreeSnapshot {
        var child = self
        var path = path
        path.withUTF8 { bytes in
            var start = 0
            while start < bytes.count {
                var end = start
                while end < bytes.count, bytes[end] != UInt8(ascii: "/") { end += 1 }
                if end > start { child.descend(bytes[start..<end]) }
                start = end + 1
            }
        }
        return child
    }

    private mutating func descend(_ name: Slice<UnsafeBufferPointer<UInt8>>) {
        if !isImpossible, keys.count < TreeLimits.standard.depthMax, name.count <= TreeLimits.standard.keySizeBytesMax {
            let key = TreeKey(String(decoding: name, as: UTF8.self))
            if TreeLimits.standard.isValid(key) {
                keys.append(key)
                node = node?.child(key)
                return
            }
        }
        beyond += 1
        node = nil
    }

    /// Nil at the root.
    package var parent: TreeSnapshot? {
        var parent = self
        if beyond > 0 {
            parent.beyond -= 1
            return parent
        }
        guard !keys.isEmpty else { return nil }
        parent.keys.removeLast()
        parent.node = nil
        return parent
    }
}
