import Glibc
import HearthModel

/// A change as the log has it; its bytes are the log's.
enum LogChange {
    case put(Keyspace, RawKey, UnsafeRawBufferPointer)
    case delete(Keyspace, RawKey)
    /// All keys from the first one up to the second one, which is nil for all that follow.
    case deleteRange(Keyspace, RawKey, RawKey?)

    var keyspace: Keyspace {
        switch self {
        case .put(let keyspace, _, _), .delete(let keyspace, _), .deleteRange(let keyspace, _, _): keyspace
        }
    }
}

/// The changes of one transaction, as they are written into the log.
///
///     length 4 · mark 4 · sequence 8 · checksum 8
///
/// The mark is a checksum of the length and the sequence, as the other one dependent on the segment's salt: what clients
/// have written never looks like the beginning of a record.
///
///     for each change: keyspace 1 · kind 1 · - 2 · key length 4 · value length 4 · key · value
///     bytes up to a multiple of 8
///
/// A deleted range has its upper bound for a value, which is empty when it has none.
///
/// `@unchecked Sendable`: of the store's writer, as the table's editor.
final class LogRecord: @unchecked Sendable {
    private(set) var base: UnsafeMutableRawPointer
    private var capacity = LogRecord.capacityMin
    private(set) var count = LogRecord.headerBytes

    static let headerBytes = 24
    static let alignment = 8
    private static let changeBytes = 12
    private static let padding: UInt8 = 0xFF
    private static let capacityMin = 1 << 16
    /// There may be many stores that are never written again.
    private static let keptCapacityMax = 256 << 10

    private enum Kind: UInt8 {
        case put = 0
        case delete = 1
        case deleteRange = 3
    }

    init() { base = Self.allocate(nil, capacity) }

    deinit { free(base) }

    private static func allocate(_ old: UnsafeMutableRawPointer?, _ capacity: Int) -> UnsafeMutableRawPointer {
        guard let base = realloc(old, capacity) else { fatalError("out of memory") }
        return base
    }

    /// Also frees the memory of a large one.
    func clear() {
        count = Self.headerBytes
        if capacity > Self.keptCapacityMax {
            capacity = Self.capacityMin
            base = Self.allocate(base, capacity)
        }
    }

    func put(_ keyspace: Keyspace, _ key: RawKey, _ value: UnsafeRawBufferPointer) { add(keyspace, .put, key, value) }
    func delete(_ keyspace: Keyspace, _ key: RawKey) {
        add(keyspace, .delete, key, UnsafeRawBufferPointer(start: nil, count: 0))
    }
    func deleteRange(_ keyspace: Keyspace, _ lower: RawKey, _ upper: RawKey?) {
        add(keyspace, .deleteRange, lower, UnsafeRawBufferPointer(start: upper?.base, count: upper?.count ?? 0))
    }

    @inline(__always)
    private func add(_ keyspace: Keyspace, _ kind: Kind, _ key: RawKey, _ value: UnsafeRawBufferPointer) {
        let end = count + Self.changeBytes + key.count + value.count
        // The padding, too.
        if end + Self.alignment > capacity {
            while end + Self.alignment > capacity { capacity *= 2 }
            base = Self.allocate(base, capacity)
        }
        let offset = base + count
        offset.storeBytes(of: UInt32(keyspace.rawValue) | UInt32(kind.rawValue) << 8, as: UInt32.self)
        offset.storeBytes(of: UInt32(key.count), toByteOffset: 4, as: UInt32.self)
        offset.storeBytes(of: UInt32(value.count), toByteOffset: 8, as: UInt32.self)
        memcpy(offset + Self.changeBytes, key.base, key.count)
        if let bytes = value.baseAddress { memcpy(offset + Self.changeBytes + key.count, bytes, value.count) }
        count = end
    }

    /// Completes the record.
    /// - Returns: its bytes, valid until the next change.
    func seal(_ sequence: UInt64, salt: UInt64) -> UnsafeRawBufferPointer {
        while count % Self.alignment != 0 {
            base.storeBytes(of: Self.padding, toByteOffset: count, as: UInt8.self)
            count += 1
        }
        let length = count - Self.headerBytes
        base.storeBytes(of: UInt32(length), as: UInt32.self)
        base.storeBytes(of: Self.mark(length, sequence, salt: salt), toByteOffset: 4, as: UInt32.self)
        base.storeBytes(of: sequence, toByteOffset: 8, as: UInt64.self)
        let sum = LogChecksum.sum(base + Self.headerBytes, length, salt, sequence)
        base.storeBytes(of: sum, toByteOffset: 16, as: UInt64.self)
        return UnsafeRawBufferPointer(start: base, count: count)
    }

    // MARK: Reading

    private static func mark(_ length: Int, _ sequence: UInt64, salt: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: LogChecksum.sum(length, sequence, salt))
    }

    /// The length of the changes of a whole record; nil when there is none there.
    static func length(_ bytes: UnsafeRawBufferPointer, at position: Int, _ sequence: UInt64, salt: UInt64) -> Int? {
        guard position + headerBytes <= bytes.count, let base = bytes.baseAddress.map({ $0 + position }),
            Self.sequence(bytes, at: position, salt: salt) == sequence
        else { return nil }
        let length = Int(base.loadUnaligned(as: UInt32.self))
        guard
            base.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
                == LogChecksum.sum(base + headerBytes, length, salt, sequence)
        else { return nil }
        return length
    }

    /// The sequence of the record that begins at an offset, whole or not; nil when none does. Takes nanoseconds.
    static func sequence(_ bytes: UnsafeRawBufferPointer, at position: Int, salt: UInt64) -> UInt64? {
        guard position + headerBytes <= bytes.count, let base = bytes.baseAddress.map({ $0 + position }) else {
            return nil
        }
        let length = Int(base.loadUnaligned(as: UInt32.self))
        let sequence = base.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        guard position + headerBytes + length <= bytes.count,
            base.loadUnaligned(fromByteOffset: 4, as: UInt32.self) == mark(length, sequence, salt: salt)
        else { return nil }
        return sequence
    }

    /// Calls `body` with each change of a record; false when it contains something unknown.
    static func forEachChange(_ changes: UnsafeRawBufferPointer, _ body: (LogChange) -> Void) -> Bool {
        guard let base = changes.baseAddress else { return true }
        var position = 0
        while position + changeBytes <= changes.count {
            let offset = base + position
            let keyCount = Int(offset.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
            let valueCount = Int(offset.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
            guard let keyspace = Keyspace(rawValue: Int(offset.load(as: UInt8.self))),
                let kind = Kind(rawValue: offset.load(fromByteOffset: 1, as: UInt8.self)),
                position + changeBytes + keyCount + valueCount <= changes.count
            else { return false }
            let key = RawKey(offset + changeBytes, keyCount)
            switch kind {
            case .put:
                let value = UnsafeRawBufferPointer(start: offset + changeBytes + keyCount, count: valueCount)
                body(.put(keyspace, key, value))
            case .delete: body(.delete(keyspace, key))
            case .deleteRange:
                let upper = valueCount > 0 ? RawKey(offset + changeBytes + keyCount, valueCount) : nil
                body(.deleteRange(keyspace, key, upper))
            }
            position += changeBytes + keyCount + valueCount
        }
        return true
    }
}

/// A checksum of 64 bits in the manner of wyhash. It depends on the segment's salt, which nobody outside knows: bytes
/// of a value, or of a record in a segment that is used again, can't pass for a record.
enum LogChecksum {
    static func sum(_ bytes: UnsafeRawPointer, _ count: Int, _ salt: UInt64, _ sequence: UInt64) -> UInt64 {
        let (first, second): (UInt64, UInt64) = (0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB)
        var a = salt ^ first
        var b = sequence ^ second
        var index = 0
        while index + 32 <= count {
            a = mixed(word(bytes, index) ^ first, word(bytes, index + 8) ^ a)
            b = mixed(word(bytes, index + 16) ^ second, word(bytes, index + 24) ^ b)
            index += 32
        }
        while index + 8 <= count {
            a = mixed(word(bytes, index) ^ second, a ^ first)
            index += 8
        }
        var rest: UInt64 = 0
        while index < count {
            rest = rest << 8 | UInt64(bytes.load(fromByteOffset: index, as: UInt8.self))
            index += 1
        }
        return mixed(a ^ rest ^ first, b ^ UInt64(count) ^ second)
    }

    /// Of the two numbers of a record's beginning.
    static func sum(_ length: Int, _ sequence: UInt64, _ salt: UInt64) -> UInt64 {
        mixed(mixed(UInt64(length) ^ 0xA076_1D64_78BD_642F, salt) ^ sequence, salt ^ 0xE703_7ED1_A0B4_28DB)
    }

    @inline(__always)
    private static func word(_ bytes: UnsafeRawPointer, _ index: Int) -> UInt64 {
        bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
    }

    @inline(__always)
    private static func mixed(_ a: UInt64, _ b: UInt64) -> UInt64 {
        let (high, low) = a.multipliedFullWidth(by: b)
        return high ^ low
    }
}
