import HearthModel

import Glibc

/// Keys in ascending order, consecutive in one allocation.
///
/// A search in an array of arrays would cost one cache miss per key, and a copy one more for each reference count.
struct MemoryStoreKeys {
    private var bytes: [UInt8] = []
    /// Where each key ends in `bytes`.
    private var ends: [Int32] = []

    var count: Int { ends.count }
    var isEmpty: Bool { ends.isEmpty }
    var byteCount: Int { bytes.count }

    subscript(index: Int) -> [UInt8] { Array(bytes[start(index)..<Int(ends[index])]) }

    @inline(__always)
    private func start(_ index: Int) -> Int { index == 0 ? 0 : Int(ends[index - 1]) }

    /// How many keys are below `key`, and whether the next one is equal to it.
    func search(_ key: [UInt8]) -> (position: Int, isFound: Bool) {
        key.withUnsafeBytes { key in
            bytes.withUnsafeBytes { bytes in
                ends.withUnsafeBufferPointer { ends in
                    var low = 0
                    var high = ends.count
                    while low < high {
                        let middle = (low + high) / 2
                        let start = middle == 0 ? 0 : Int(ends[middle - 1])
                        let order = Self.compare(bytes, start, Int(ends[middle]), key)
                        if order == 0 { return (middle, true) }
                        if order < 0 { low = middle + 1 } else { high = middle }
                    }
                    return (low, false)
                }
            }
        }
    }

    /// Negative, zero or positive, as the key at `index` is below, equal to or above `key`.
    func compare(_ index: Int, _ key: [UInt8]) -> Int {
        key.withUnsafeBytes { key in
            bytes.withUnsafeBytes { Self.compare($0, start(index), Int(ends[index]), key) }
        }
    }

    @inline(__always)
    private static func compare(
        _ bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int, _ key: UnsafeRawBufferPointer
    ) -> Int {
        let shared = min(end - start, key.count)
        if shared > 0, let left = bytes.baseAddress, let right = key.baseAddress {
            let order = memcmp(left + start, right, shared)
            if order != 0 { return Int(order) }
        }
        return end - start - key.count
    }

    // MARK: Changes

    mutating func insert(_ key: [UInt8], at index: Int) {
        let start = start(index)
        bytes.insert(contentsOf: key, at: start)
        ends.insert(Int32(start + key.count), at: index)
        move(from: index + 1, by: Int32(key.count))
    }

    mutating func remove(at index: Int) {
        let start = start(index)
        let count = Int(ends[index]) - start
        bytes.removeSubrange(start..<(start + count))
        ends.remove(at: index)
        move(from: index, by: Int32(-count))
    }

    private mutating func move(from index: Int, by distance: Int32) {
        ends.withUnsafeMutableBufferPointer { ends in
            for index in index..<ends.count { ends[index] += distance }
        }
    }

    /// Removes the keys from `index` on and returns them.
    mutating func split(at index: Int) -> MemoryStoreKeys {
        var tail = MemoryStoreKeys()
        let start = start(index)
        tail.bytes = Array(bytes[start...])
        tail.ends = ends[index...].map { $0 - Int32(start) }
        bytes.removeSubrange(start...)
        ends.removeSubrange(index...)
        return tail
    }

    /// Adds keys that are all above these.
    mutating func append(_ other: MemoryStoreKeys) {
        let start = Int32(bytes.count)
        bytes += other.bytes
        ends += other.ends.map { $0 + start }
    }
}
