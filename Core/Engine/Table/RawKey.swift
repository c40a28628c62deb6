import Glibc

/// The bytes of a key that something else owns and keeps alive.
struct RawKey {
    let base: UnsafeRawPointer
    let count: Int

    @inline(__always)
    init(_ base: UnsafeRawPointer, _ count: Int) {
        self.base = base
        self.count = count
    }

    @inline(__always)
    init(_ buffer: UnsafeRawBufferPointer) {
        // An empty array may have no address. Any will do: nothing is read there.
        base = buffer.baseAddress ?? UnsafeRawPointer(bitPattern: 8).unsafelyUnwrapped
        count = buffer.count
    }

    /// Below 0 when this key is before the other one, 0 when they are equal.
    /// - Parameter skip: how many bytes both have and share, at the start.
    @inline(__always)
    func compare(_ other: RawKey, from skip: Int = 0) -> Int {
        let shared = min(count, other.count) - skip
        if shared > 0 {
            let order = memcmp(base + skip, other.base + skip, shared)
            if order != 0 { return Int(order) }
        }
        return count - other.count
    }

    /// The eight bytes from `skip` on as a number that sorts as they do; zeros follow the end.
    /// - Parameter skip: at most `count`.
    @inline(__always)
    func number(from skip: Int) -> UInt64 {
        let rest = count - skip
        if rest >= 8 { return UInt64(bigEndian: base.loadUnaligned(fromByteOffset: skip, as: UInt64.self)) }
        var number: UInt64 = 0
        for index in 0..<rest { number = number << 8 | UInt64(base.load(fromByteOffset: skip + index, as: UInt8.self)) }
        return rest == 0 ? 0 : number << (8 * UInt64(8 - rest))
    }

    /// How many bytes both keys have in common at the start, at most `limit`.
    func sharedCount(_ other: RawKey, max limit: Int) -> Int {
        let end = min(count, other.count, limit)
        var index = 0
        while index + 8 <= end,
            base.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                == other.base.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        { index += 8 }
        while index < end,
            base.load(fromByteOffset: index, as: UInt8.self) == other.base.load(fromByteOffset: index, as: UInt8.self)
        { index += 1 }
        return index
    }

    var bytes: [UInt8] { [UInt8](UnsafeRawBufferPointer(start: base, count: count)) }
}

extension [UInt8]? {
    /// The same for an array or nothing.
    @inline(__always)
    func withKey<Result>(_ body: (RawKey?) -> Result) -> Result {
        guard let self else { return body(nil) }
        return self.withKey { body($0) }
    }
}

extension [UInt8] {
    /// Calls `body` with the array as a key.
    @inline(__always)
    func withKey<Result>(_ body: (RawKey) -> Result) -> Result { withUnsafeBytes { body(RawKey($0)) } }
}
