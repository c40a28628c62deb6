import HearthModel
import HearthTree

/// The stored record of a location: a leaf, or the priority of an inner node.
///
///     first byte   low half: the kind of the value; high half: the kind of its priority, 0 for none
///     priority     a number in 8 bytes, or a string: its length in 4 bytes, UTF-8
///     value        an integer in as few bytes as it needs, a double in 8, a string's UTF-8 to the end of the record,
///                  or the length in 4 bytes of a string that is stored elsewhere
///
/// Kinds: 0 none or inner node, 1 false, 2 true, 3 integer, 4 double, 5 string, 6 string that is stored elsewhere.
/// Big-endian.
///
/// A string that is longer than `stringSizeBytesMax` is stored in the keyspace of documents, under the leaf's key: the
/// records' B-tree stores whole rows, and walks over it should skip large values.
struct TreeRecord: Equatable {
    let bytes: [UInt8]

    static let stringSizeBytesMax = Leaf.stringSizeBytesMax

    private enum Kind {
        static let inner: UInt8 = 0
        static let no: UInt8 = 1
        static let yes: UInt8 = 2
        static let integer: UInt8 = 3
        static let double: UInt8 = 4
        static let string: UInt8 = 5
        static let stringElsewhere: UInt8 = 6
    }

    static let damaged = Status(.dataLoss, "A record of the tree is damaged.")

    init(stored bytes: [UInt8]) throws(Status) {
        guard let first = bytes.first, first & 0x0F <= Kind.stringElsewhere, first >> 4 <= Kind.string else {
            throw Self.damaged
        }
        self.bytes = bytes
    }

    /// - Parameter value: nil for an inner node.
    init(_ value: Scalar?, priority: Scalar?) {
        var bytes: [UInt8] = [0]
        if let priority {
            bytes[0] = Self.kind(priority) << 4
            switch priority {
            case .string(let string):
                Self.append(string.utf8.count, bytes: 4, to: &bytes)
                bytes.append(contentsOf: string.utf8)
            default: Self.append(priority, to: &bytes)
            }
        }
        if let value {
            var kind = Self.kind(value)
            if case .string(let string) = value, string.utf8.count > Self.stringSizeBytesMax {
                kind = Kind.stringElsewhere
                Self.append(string.utf8.count, bytes: 4, to: &bytes)
            } else if case .integer(let number) = value {
                Self.appendShort(number, to: &bytes)
            } else {
                Self.append(value, to: &bytes)
            }
            bytes[0] |= kind
        }
        self.bytes = bytes
    }

    private static func kind(_ scalar: Scalar) -> UInt8 {
        switch scalar {
        case .bool(let value): value ? Kind.yes : Kind.no
        case .integer: Kind.integer
        case .double: Kind.double
        case .string: Kind.string
        case .deferred: preconditionFailure("deferred values are computed before they are stored")
        }
    }

    private static func append(_ scalar: Scalar, to bytes: inout [UInt8]) {
        switch scalar {
        case .bool, .deferred: break
        case .integer(let number): append(Int(number), bytes: 8, to: &bytes)
        case .double(let number): append(Int(bitPattern: UInt(number.bitPattern)), bytes: 8, to: &bytes)
        case .string(let string): bytes.append(contentsOf: string.utf8)
        }
    }

    private static func append(_ number: Int, bytes count: Int, to bytes: inout [UInt8]) {
        for index in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
    }

    private static func appendShort(_ number: Int64, to bytes: inout [UInt8]) {
        var count = 8
        // A byte may be omitted while the remaining bytes have the same sign.
        while count > 1, number >> (8 * Int64(count) - 9) == (number < 0 ? -1 : 0) { count -= 1 }
        append(Int(number), bytes: count, to: &bytes)
    }

    // MARK: Reading

    private var kind: UInt8 { bytes[0] & 0x0F }
    private var priorityKind: UInt8 { bytes[0] >> 4 }

    var isInner: Bool { kind == Kind.inner }
    var isStoredElsewhere: Bool { kind == Kind.stringElsewhere }
    var hasPriority: Bool { priorityKind != 0 }

    /// The stored bytes of the value, in either keyspace.
    var valueSizeBytes: Int {
        get throws(Status) {
            let start = try valueStart
            return isStoredElsewhere ? Int(try number(at: start, count: 4)) : bytes.count - start
        }
    }

    private func number(at start: Int, count: Int) throws(Status) -> Int64 {
        guard count > 0, count <= 8, start + count <= bytes.count else { throw Self.damaged }
        var number = Int64(bytes[start] & 0x80 == 0 || count == 4 ? 0 : -1)
        for byte in bytes[start..<(start + count)] { number = number << 8 | Int64(byte) }
        return number
    }

    private var valueStart: Int {
        get throws(Status) {
            switch priorityKind {
            case 0, Kind.no, Kind.yes: return 1
            case Kind.string:
                let end = 5 + Int(try number(at: 1, count: 4))
                guard end <= bytes.count else { throw Self.damaged }
                return end
            default:
                guard bytes.count >= 9 else { throw Self.damaged }
                return 9
            }
        }
    }

    var priority: Scalar? {
        get throws(Status) {
            if !hasPriority { return nil }
            let end = try valueStart
            guard end <= bytes.count else { throw Self.damaged }
            return try Self.scalar(priorityKind, bytes, from: priorityKind == Kind.string ? 5 : 1, to: end)
        }
    }

    /// The value of a leaf, nil of an inner node.
    /// - Parameter elsewhere: reads a string that isn't in the record.
    func value(_ elsewhere: () throws(Status) -> [UInt8]) throws(Status) -> Scalar? {
        if isInner { return nil }
        if isStoredElsewhere { return .string(String(decoding: try elsewhere(), as: UTF8.self)) }
        return try Self.scalar(kind, bytes, from: try valueStart, to: bytes.count)
    }

    private static func scalar(_ kind: UInt8, _ bytes: [UInt8], from start: Int, to end: Int) throws(Status) -> Scalar {
        func number() throws(Status) -> Int64 {
            guard start < end, end - start <= 8 else { throw damaged }
            var number: Int64 = bytes[start] & 0x80 == 0 ? 0 : -1
            for byte in bytes[start..<end] { number = number << 8 | Int64(byte) }
            return number
        }
        switch kind {
        case Kind.no: return .bool(false)
        case Kind.yes: return .bool(true)
        case Kind.integer: return .integer(try number())
        case Kind.double:
            let double = Double(bitPattern: UInt64(bitPattern: try number()))
            // JSON has no other, so that none was stored.
            guard double.isFinite else { throw damaged }
            return .double(double)
        case Kind.string:
            guard start <= end else { throw damaged }
            return .string(String(decoding: bytes[start..<end], as: UTF8.self))
        default: throw damaged
        }
    }
}
