import Glibc

/// A node of a table's B+tree: sorted keys, and in an inner node one child more than keys.
///
///     version 8 · keys 2 · is leaf 1 · - 1 · shared 2 · - 2 · entries below 8 · the first shared bytes 40
///     for each key: eight of its bytes as a number
///     for each key: its entry (leaf) or separator (inner node)
///     for each child of an inner node: its block
///
/// All keys of a node have the same first `sharedCount` bytes, and the numbers are of the eight bytes behind these. So a
/// search reads the numbers, which are in a few cache lines, and rarely a key.
struct TableNode {
    let block: TableBlock

    static let capacity = 48
    private static let headerBytes = 64
    /// The shared bytes that are in the header; when there are more, they are read from a key.
    private static let sharedBytesMax = 40
    private static let sharedOffset = 24
    private static let keysOffset = headerBytes + 8 * capacity
    private static let childrenOffset = headerBytes + 16 * capacity
    static let leafBytes = headerBytes + 16 * capacity
    static let innerBytes = headerBytes + 24 * capacity + 8

    @inline(__always) init(_ block: TableBlock) { self.block = block }

    /// The number of keys.
    @inline(__always) var count: Int {
        get { Int(block.load(fromByteOffset: 8, as: UInt16.self)) }
        nonmutating set { block.storeBytes(of: UInt16(truncatingIfNeeded: newValue), toByteOffset: 8, as: UInt16.self) }
    }

    @inline(__always) var isLeaf: Bool { block.load(fromByteOffset: 10, as: UInt8.self) != 0 }

    @inline(__always) private var sharedCount: Int {
        get { Int(block.load(fromByteOffset: 12, as: UInt16.self)) }
        nonmutating set {
            block.storeBytes(of: UInt16(truncatingIfNeeded: newValue), toByteOffset: 12, as: UInt16.self)
        }
    }

    /// The number of entries below the node.
    @inline(__always) var entryCount: Int {
        get { isLeaf ? count : block.load(fromByteOffset: 16, as: Int.self) }
        nonmutating set { block.storeBytes(of: newValue, toByteOffset: 16, as: Int.self) }
    }

    @inline(__always) private var numbers: UnsafeMutablePointer<UInt64> {
        (block + Self.headerBytes).assumingMemoryBound(to: UInt64.self)
    }

    /// A leaf's entries, an inner node's separators: `keys[i]` is the smallest key that may be below `children[i + 1]`.
    @inline(__always) var keys: UnsafeMutablePointer<TableBlock> {
        (block + Self.keysOffset).assumingMemoryBound(to: TableBlock.self)
    }

    @inline(__always) var children: UnsafeMutablePointer<TableBlock> {
        (block + Self.childrenOffset).assumingMemoryBound(to: TableBlock.self)
    }

    @inline(__always) func key(_ index: Int) -> RawKey { TableEntry(keys[index]).key }
    @inline(__always) func child(_ index: Int) -> TableNode { TableNode(children[index]) }

    @inline(__always) var sizeBytes: Int { isLeaf ? Self.leafBytes : Self.innerBytes }

    func clear(isLeaf: Bool) {
        memset(block + 8, 0, Self.headerBytes - 8)
        block.storeBytes(of: isLeaf ? 1 : 0, toByteOffset: 10, as: UInt8.self)
    }

    /// Copies everything but the version.
    func copyContents(of other: TableNode) {
        let count = other.count
        memcpy(block + 8, other.block + 8, Self.headerBytes - 8 + 8 * count)
        memcpy(keys, other.keys, 8 * count)
        if !other.isLeaf { memcpy(children, other.children, 8 * (count + 1)) }
    }

    // MARK: Search

    /// How many keys are before `key`, and whether the next one is equal to it.
    @inline(__always)
    func search(_ key: RawKey) -> (position: Int, isFound: Bool) {
        let count = self.count
        if count == 0 { return (0, false) }
        let sharedCount = self.sharedCount
        if sharedCount > 0 {
            let order = memcmp(key.base, shared.base, min(sharedCount, key.count))
            if order > 0 { return (count, false) }
            if order < 0 || key.count < sharedCount { return (0, false) }
        }
        let number = key.number(from: sharedCount)
        let numbers = self.numbers
        var low = 0
        var length = count
        while length > 1 {
            let half = length / 2
            low = numbers[low + half - 1] < number ? low + half : low
            length -= half
        }
        if numbers[low] < number { low += 1 }
        if low == count || numbers[low] != number { return (low, false) }
        // Several keys can have the same number; usually one has.
        var high = low + 1
        while high < count, numbers[high] == number { high += 1 }
        while low < high {
            let middle = (low + high) / 2
            let order = self.key(middle).compare(key, from: sharedCount)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }

    /// The index of the child that has a key, or, when `isBelow`, the keys before it.
    @inline(__always)
    func childIndex(_ key: RawKey, isBelow: Bool = false) -> Int {
        let (position, isFound) = search(key)
        return isFound && !isBelow ? position + 1 : position
    }

    @inline(__always)
    private var shared: RawKey {
        let count = sharedCount
        return count <= Self.sharedBytesMax
            ? RawKey(UnsafeRawPointer(block + Self.sharedOffset), count) : RawKey(key(0).base, count)
    }

    // MARK: Changes

    /// Works out the shared bytes and the numbers anew from the keys.
    func renumber() {
        let count = self.count
        guard count > 0 else { return sharedCount = 0 }
        share(key(0), key(0).sharedCount(key(count - 1), max: Int(UInt16.max)))
    }

    private func share(_ key: RawKey, _ count: Int) {
        sharedCount = count
        memcpy(block + Self.sharedOffset, key.base, min(count, Self.sharedBytesMax))
        for index in 0..<self.count { numbers[index] = self.key(index).number(from: count) }
    }

    func insertKey(_ entry: TableEntry, at index: Int) {
        let count = self.count
        let key = entry.key
        if count == 0 {
            keys[0] = entry.block
            self.count = 1
            return share(key, min(key.count, Int(UInt16.max)))
        }
        let common = key.sharedCount(shared, max: sharedCount)
        if common < sharedCount { share(self.key(0), common) }
        memmove(numbers + index + 1, numbers + index, 8 * (count - index))
        memmove(keys + index + 1, keys + index, 8 * (count - index))
        numbers[index] = key.number(from: sharedCount)
        keys[index] = entry.block
        self.count = count + 1
    }

    func removeKey(at index: Int) {
        let count = self.count
        memmove(numbers + index, numbers + index + 1, 8 * (count - index - 1))
        memmove(keys + index, keys + index + 1, 8 * (count - index - 1))
        self.count = count - 1
    }

    /// To be called before the insertion of the separator that belongs to the child.
    func insertChild(_ child: TableNode, at index: Int) {
        memmove(children + index + 1, children + index, 8 * (count + 1 - index))
        children[index] = child.block
    }

    /// To be called before the removal of the separator that belongs to the child.
    func removeChild(at index: Int) {
        memmove(children + index, children + index + 1, 8 * (count - index))
    }
}
