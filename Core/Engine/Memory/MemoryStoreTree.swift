/// An ordered map of byte strings as a B+ tree whose copies share their nodes.
///
/// Copying the tree is retaining its root. A change copies a node first, unless this tree alone holds it: a node that
/// no other root, cursor or copied node refers to is unique all the way down from a unique root, because copying a node
/// retains its children. So a node that another owner can see never changes.
///
/// Leaves hold keys and values; an inner node holds its children and, between each two, a separator: the keys of the
/// left child are below it, those of the right child are not. All leaves are at the same depth.
struct MemoryStoreTree: @unchecked Sendable {
    // Guarded by the rule above: nodes that two threads can see are never written.
    private(set) var root = Node()

    /// Entries of a node at most. Larger ones make walks and searches faster, and copies slower.
    static let entriesMax = 64
    /// Bytes of a node's keys at most, unless it has only a few.
    static let keyBytesMax = 16 << 10
    static let entriesOfLongKeys = 4
    /// A node with fewer is merged into a neighbour, when the two fill three quarters of a node at most.
    static let entriesMin = 16

    final class Node {
        /// A leaf's keys, or the separators.
        var keys: MemoryStoreKeys
        var values: MemoryStoreValues
        var children: [Node]
        /// Keys in the leaves below.
        var count: Int

        init(
            keys: MemoryStoreKeys = MemoryStoreKeys(), values: MemoryStoreValues = MemoryStoreValues(),
            children: [Node] = [], count: Int = 0
        ) {
            self.keys = keys
            self.values = values
            self.children = children
            self.count = count
        }

        var isLeaf: Bool { children.isEmpty }
        var entries: Int { isLeaf ? keys.count : children.count }

        func copy() -> Node { Node(keys: keys, values: values, children: children, count: count) }

        /// The child whose keys may include `key`.
        func child(_ key: [UInt8]) -> Int {
            let (position, isFound) = keys.search(key)
            return isFound ? position + 1 : position
        }

        fileprivate var isTooLarge: Bool {
            entries > entriesMax || keys.byteCount > keyBytesMax && entries > entriesOfLongKeys
        }
    }

    var count: Int { root.count }

    func get(_ key: [UInt8]) -> [UInt8]? {
        var node = root
        while !node.isLeaf { node = node.children[node.child(key)] }
        let (position, isFound) = node.keys.search(key)
        return isFound ? node.values[position] : nil
    }

    /// The number of keys below `key`.
    func rank(_ key: [UInt8]) -> Int {
        var rank = 0
        var node = root
        while !node.isLeaf {
            let index = node.child(key)
            for child in node.children[..<index] { rank += child.count }
            node = node.children[index]
        }
        return rank + node.keys.search(key).position
    }

    // MARK: Changes

    mutating func put(_ key: [UInt8], _ value: [UInt8]) {
        guard let (separator, right) = Self.put(&root, key, value) else { return }
        var keys = MemoryStoreKeys()
        keys.insert(separator, at: 0)
        root = Node(keys: keys, children: [root, right], count: root.count + right.count)
    }

    /// The right half of a node that had to be split, and the separator between the two.
    private typealias Half = (separator: [UInt8], right: Node)

    private static func put(_ node: inout Node, _ key: [UInt8], _ value: [UInt8]) -> Half? {
        if !isKnownUniquelyReferenced(&node) { node = node.copy() }
        if node.isLeaf {
            let (position, isFound) = node.keys.search(key)
            if isFound {
                node.values[position] = value
                return nil
            }
            node.keys.insert(key, at: position)
            node.values.insert(value, at: position)
            node.count += 1
            return split(node, after: position)
        }
        let index = node.child(key)
        let before = node.children[index].count
        let half = put(&node.children[index], key, value)
        node.count += node.children[index].count - before
        guard let half else { return nil }
        node.count += half.right.count
        node.keys.insert(half.separator, at: index)
        node.children.insert(half.right, at: index + 1)
        return split(node, after: index + 1)
    }

    /// Splits a node that is too large after an insertion.
    private static func split(_ node: Node, after inserted: Int) -> Half? {
        if !node.isTooLarge { return nil }
        let entries = node.entries
        // A tree that grows at its end, like the feed, has full nodes.
        let middle = inserted == entries - 1 ? entries - 1 : entries / 2
        let right = Node()
        let separator: [UInt8]
        if node.isLeaf {
            separator = node.keys[middle]
            right.keys = node.keys.split(at: middle)
            right.values = node.values.split(at: middle)
            right.count = right.values.count
        } else {
            separator = node.keys[middle - 1]
            right.keys = node.keys.split(at: middle)
            right.children = Array(node.children[middle...])
            right.count = right.children.reduce(0) { $0 + $1.count }
            node.keys.remove(at: middle - 1)
            node.children.removeSubrange(middle...)
        }
        node.count -= right.count
        return (separator, right)
    }

    mutating func remove(_ key: [UInt8]) {
        guard Self.remove(&root, key) else { return }
        while root.children.count == 1 { root = root.children[0] }
    }

    /// False when there was nothing to remove. Inner nodes may have been copied for it, without visible effect.
    private static func remove(_ node: inout Node, _ key: [UInt8]) -> Bool {
        if node.isLeaf {
            let (position, isFound) = node.keys.search(key)
            if !isFound { return false }
            if !isKnownUniquelyReferenced(&node) { node = node.copy() }
            node.count -= 1
            node.keys.remove(at: position)
            node.values.remove(at: position)
            return true
        }
        if !isKnownUniquelyReferenced(&node) { node = node.copy() }
        let index = node.child(key)
        guard remove(&node.children[index], key) else { return false }
        node.count -= 1
        if node.children[index].entries >= entriesMin { return true }
        if node.children[index].count == 0 {
            if node.children.count > 1 {
                node.children.remove(at: index)
                node.keys.remove(at: max(0, index - 1))
            }
        } else if index + 1 < node.children.count {
            mergeIfSmall(node, index)
        } else if index > 0 {
            mergeIfSmall(node, index - 1)
        }
        return true
    }

    /// Merges a child with the next one, if they fit.
    private static func mergeIfSmall(_ node: Node, _ index: Int) {
        let right = node.children[index + 1]
        let entries = node.children[index].entries + right.entries
        let keyBytes = node.children[index].keys.byteCount + right.keys.byteCount
        if entries > entriesMax * 3 / 4 || keyBytes > keyBytesMax * 3 / 4 { return }
        if !isKnownUniquelyReferenced(&node.children[index]) { node.children[index] = node.children[index].copy() }
        let left = node.children[index]
        if !left.isLeaf { left.keys.insert(node.keys[index], at: left.keys.count) }
        left.keys.append(right.keys)
        left.values.append(right.values)
        left.children += right.children
        left.count += right.count
        node.keys.remove(at: index)
        node.children.remove(at: index + 1)
    }
}
