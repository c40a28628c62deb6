import HearthModel
import HearthTree

/// The order-preserving byte form of the children's order values, in entries of indexes and of priorities.
///
///     nothing 05 · false 0A · true 0B · a number 0F and the double in 8 bytes, its sign bit flipped if positive, all bits
///     flipped if negative · a string 19 STRING 00 01 · a node with children 37
///     STRING: UTF-8 with EE and EF for F5 and F6 (`UTF16Order.rank`); 00 becomes 00 FF
///
/// No form begins with another. Of a long string only the beginning is stored, with 00 02 behind it. Such entries are
/// adjacent, behind the string that ends there and before greater ones, and have no order among themselves.
///
/// This is not the `IndexValue` of documents: strings have another order here, and numbers are ordered as doubles.
enum IndexCode {
    static let null: UInt8 = 0x05
    static let no: UInt8 = 0x0A
    static let yes: UInt8 = 0x0B
    static let number: UInt8 = 0x0F
    static let string: UInt8 = 0x19
    static let inner: UInt8 = 0x37

    /// The bytes of a string in an entry.
    static let stringSizeBytesMax = 256

    static func append(_ scalar: Scalar?, to bytes: inout [UInt8]) {
        switch scalar {
        case nil: bytes.append(null)
        case .bool(let value): bytes.append(value ? yes : no)
        case .integer(let value): appendNumber(Double(value), to: &bytes)
        case .double(let value): appendNumber(value, to: &bytes)
        case .string(let value): appendString(value, to: &bytes)
        case .deferred: preconditionFailure("deferred values are computed before they are stored")
        }
    }

    private static func appendNumber(_ value: Double, to bytes: inout [UInt8]) {
        bytes.append(number)
        let bits = (value == 0 ? 0.0 : value).bitPattern
        let ordered = bits >> 63 == 0 ? bits ^ (1 << 63) : ~bits
        withUnsafeBytes(of: ordered.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private static func appendString(_ value: String, to bytes: inout [UInt8]) {
        bytes.append(string)
        for byte in value.utf8.prefix(stringSizeBytesMax) {
            bytes.append(UTF16Order.rank(byte))
            if byte == 0 { bytes.append(0xFF) }
        }
        bytes.append(0)
        bytes.append(isCut(value) ? 2 : 1)
    }

    /// Whether the entry contains only the beginning of a string.
    static func isCut(_ value: String) -> Bool { value.utf8.count > stringSizeBytesMax }

    static let damaged = Status(.dataLoss, "An entry of an index is damaged.")

    /// The end of the form that begins at `start`, and whether it is only a beginning.
    static func end(of bytes: [UInt8], from start: Int) throws(Status) -> (end: Int, isCut: Bool) {
        guard start < bytes.count else { throw damaged }
        switch bytes[start] {
        case null, no, yes, inner: return (start + 1, false)
        case number:
            guard start + 9 <= bytes.count else { throw damaged }
            return (start + 9, false)
        case string:
            var position = start + 1
            while position + 1 < bytes.count {
                if bytes[position] == 0 {
                    if bytes[position + 1] != 0xFF { return (position + 2, bytes[position + 1] == 2) }
                    position += 1
                }
                position += 1
            }
            throw damaged
        default: throw damaged
        }
    }

    /// The value of a form that isn't only a beginning; integers are returned as doubles, to which they compare equal.
    static func value(_ bytes: ArraySlice<UInt8>) throws(Status) -> TreeIndexValue {
        let start = bytes.startIndex
        switch bytes[start] {
        case null: return .null
        case no: return .scalar(.bool(false))
        case yes: return .scalar(.bool(true))
        case inner: return .inner
        case number:
            let ordered = bytes[(start + 1)...].prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            let bits = ordered >> 63 == 1 ? ordered ^ (1 << 63) : ~ordered
            let double = Double(bitPattern: bits)
            guard double.isFinite else { throw damaged }
            return .scalar(.double(double))
        case string:
            var utf8: [UInt8] = []
            var position = start + 1
            while position < bytes.endIndex - 2 {
                let byte = bytes[position]
                utf8.append(byte >= 0xF5 ? byte - 7 : byte)
                position += byte == 0 ? 2 : 1
            }
            return .scalar(.string(String(decoding: utf8, as: UTF8.self)))
        default: throw damaged
        }
    }
}

extension TreeIndexValue {
    func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes.append(IndexCode.null)
        case .scalar(let scalar): IndexCode.append(scalar, to: &bytes)
        case .inner: bytes.append(IndexCode.inner)
        }
    }
}
