import Glibc

/// A key and its value; never changed once it is made. The separators of inner nodes are entries with empty values.
///
///     version 8 · key length 4 · value length 4 · key · value
///
/// A tombstone says that a key isn't there, for tables that lie over something else; instead of a value's length it has
/// a mark.
struct TableEntry {
    let block: TableBlock

    private static let headerBytes = 16
    private static let tombstoneMark = UInt32.max

    @inline(__always) init(_ block: TableBlock) { self.block = block }

    @inline(__always)
    static func sizeBytes(_ keyCount: Int, _ valueCount: Int) -> Int { headerBytes + keyCount + valueCount }

    /// Writes everything but the version.
    @inline(__always)
    func fill(_ key: RawKey, _ value: UnsafeRawBufferPointer) {
        block.storeBytes(of: UInt32(key.count), toByteOffset: 8, as: UInt32.self)
        block.storeBytes(of: UInt32(value.count), toByteOffset: 12, as: UInt32.self)
        memcpy(block + Self.headerBytes, key.base, key.count)
        if let base = value.baseAddress { memcpy(block + Self.headerBytes + key.count, base, value.count) }
    }

    /// The same for a tombstone.
    func fillTombstone(_ key: RawKey) {
        fill(key, UnsafeRawBufferPointer(start: nil, count: 0))
        block.storeBytes(of: Self.tombstoneMark, toByteOffset: 12, as: UInt32.self)
    }

    @inline(__always)
    var isTombstone: Bool { valueMark == Self.tombstoneMark }

    /// The entry's own bytes.
    @inline(__always)
    var sizeBytes: Int { Self.sizeBytes(keyCount, isTombstone ? 0 : Int(valueMark)) }

    @inline(__always)
    private var valueMark: UInt32 { block.load(fromByteOffset: 12, as: UInt32.self) }

    @inline(__always)
    private var keyCount: Int { Int(block.load(fromByteOffset: 8, as: UInt32.self)) }

    @inline(__always)
    var key: RawKey { RawKey(UnsafeRawPointer(block + Self.headerBytes), keyCount) }

    /// Not of a tombstone.
    @inline(__always)
    var value: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: block + Self.headerBytes + keyCount, count: Int(valueMark))
    }
}
