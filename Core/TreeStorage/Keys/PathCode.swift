import HearthModel
import HearthEngine
import HearthTree

/// The order-preserving byte form of keys and paths.
///
/// For two keys a and b: `a < b` exactly when the bytes of a are below those of b, and no key's bytes begin with
/// another's. So a path is the concatenation of its keys' bytes, a subtree is a prefix range, and a walk over it is in
/// the order of keys. Format of a key:
///
///     an integer (`TreeKey.integer`)   01, the number + 2^31 in 4 bytes, SPELLING
///     any other                        02, its UTF-8 with EE and EF for F5 and F6 (`UTF16Order.rank`), 00
///     SPELLING: how much longer than the usual one: 0 for that; n for n zeros more in front; of zero, 2n for n zeros more,
///               2n - 1 when the first of them is a "-". Below F0 one byte, else two: F0 + n / 256, n % 256
///
/// Big-endian. Keys have no characters below U+0020, so the 00 sorts below every byte that may follow it.
enum PathCode {
    /// First byte of a record's key: its kind.
    enum Space {
        static let records: UInt8 = 0x01
        static let index: UInt8 = 0x02
        static let priorities: UInt8 = 0x03
        /// Behind all others: the staged records of writes that are not in the tree yet (`TreeGraft`).
        static let staged: UInt8 = 0x04
    }

    static let integerTag: UInt8 = 0x01
    static let stringTag: UInt8 = 0x02
    static let stringEnd: UInt8 = 0x00
    /// Below every key's first byte: ends a path that is followed by other data.
    static let pathEnd: UInt8 = 0x00

    /// The prefix of the records of a location.
    static func location(_ path: TreePath) -> [UInt8] {
        var bytes: [UInt8] = [Space.records]
        bytes.reserveCapacity(1 + path.keys.count * 24)
        append(path, to: &bytes)
        return bytes
    }

    static func append(_ path: TreePath, to bytes: inout [UInt8]) {
        for key in path.keys { append(key, to: &bytes) }
    }

    static func append(_ key: TreeKey, to bytes: inout [UInt8]) {
        if let number = key.integer { return append(number, spelling: key.string, to: &bytes) }
        bytes.append(stringTag)
        appendString(key.string, to: &bytes)
        bytes.append(stringEnd)
    }

    /// The position of a child whose key only bounds a query. The key may contain characters that no child's key has.
    /// All child keys that begin with the part before such a character are longer, and sort behind it; only that part
    /// itself sorts before it.
    static func bound(_ location: [UInt8], _ key: TreeKey) -> [UInt8] {
        var bytes = location
        if key.integer == nil, let control = key.string.utf8.firstIndex(where: { $0 < 0x20 }) {
            bytes.append(stringTag)
            appendString(String(key.string[..<control]), to: &bytes)
            bytes.append(stringEnd + 1)
        } else {
            append(key, to: &bytes)
        }
        return bytes
    }

    private static func append(_ number: Int32, spelling: String, to bytes: inout [UInt8]) {
        bytes.append(integerTag)
        let offset = UInt32(bitPattern: number) ^ (1 << 31)
        for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: offset >> shift)) }
        let length = spelling.utf8.count
        let more = length - usualLength(number)
        var code = more
        if number == 0 { code = 2 * more - (spelling.utf8.first == UInt8(ascii: "-") ? 1 : 0) }
        // Keys have at most 768 bytes; a bound of a query may be longer, and then only has to sort behind them.
        code = min(code, 0xFFF)
        if code < 0xF0 {
            bytes.append(UInt8(code))
        } else {
            bytes.append(0xF0 | UInt8(code >> 8))
            bytes.append(UInt8(code & 0xFF))
        }
    }

    private static func usualLength(_ number: Int32) -> Int {
        var length = number < 0 ? 2 : 1
        var rest = number.magnitude / 10
        while rest > 0 {
            length += 1
            rest /= 10
        }
        return length
    }

    private static func appendString(_ string: String, to bytes: inout [UInt8]) {
        var string = string
        string.withUTF8 { utf8 in
            for byte in utf8 { bytes.append(UTF16Order.rank(byte)) }
        }
    }

    // MARK: Reading

    static let damaged = Status(.dataLoss, "A record of the tree has a key that is damaged.")

    /// The end of the key that begins at `start`.
    static func end(of bytes: borrowing [UInt8], from start: Int) throws(Status) -> Int {
        guard start < bytes.count else { throw damaged }
        if bytes[start] == integerTag {
            guard start + 6 <= bytes.count else { throw damaged }
            let end = start + (bytes[start + 5] < 0xF0 ? 6 : 7)
            guard end <= bytes.count else { throw damaged }
            return end
        }
        guard bytes[start] == stringTag else { throw damaged }
        var position = start + 1
        while position < bytes.count {
            if bytes[position] == stringEnd { return position + 1 }
            position += 1
        }
        throw damaged
    }

    /// The key whose bytes are a slice that `end` found.
    static func key(_ bytes: ArraySlice<UInt8>) -> TreeKey {
        let start = bytes.startIndex
        if bytes[start] == integerTag { return integerKey(bytes) }
        let string = bytes[(start + 1)..<(bytes.endIndex - 1)]
        if !string.contains(where: { $0 >= 0xF5 }) { return TreeKey(String(decoding: string, as: UTF8.self)) }
        return TreeKey(String(decoding: string.map { $0 >= 0xF5 ? $0 - 7 : $0 }, as: UTF8.self))
    }

    /// The key that begins at `start`, and that nothing follows.
    static func lastKey(of bytes: borrowing [UInt8], from start: Int) throws(Status) -> TreeKey {
        let end = try Self.end(of: bytes, from: start)
        if end < bytes.count { throw damaged }
        return key(bytes[start..<end])
    }

    private static func integerKey(_ bytes: ArraySlice<UInt8>) -> TreeKey {
        let start = bytes.startIndex
        var offset: UInt32 = 0
        for byte in bytes[(start + 1)..<(start + 5)] { offset = offset << 8 | UInt32(byte) }
        let number = Int32(bitPattern: offset ^ (1 << 31))
        var code = Int(bytes[start + 5])
        if code >= 0xF0 { code = (code & 0x0F) << 8 | Int(bytes[start + 6]) }
        if code == 0 { return TreeKey(Int(number)) }
        if number == 0 {
            let zeros = (code + 1) / 2
            return TreeKey((code % 2 == 1 ? "-" : "0") + String(repeating: "0", count: zeros))
        }
        return TreeKey((number < 0 ? "-" : "") + String(repeating: "0", count: code) + String(number.magnitude))
    }

    /// The first position behind a location and its subtree.
    static func after(_ location: [UInt8]) -> [UInt8] {
        guard let bound = KeyRange.successor(ofPrefix: location) else {
            preconditionFailure("a location begins with its space, which is not FF")
        }
        return bound
    }

    /// The range of everything below a location, without the location's own record.
    static func below(_ location: [UInt8]) -> KeyRange {
        KeyRange(lower: location + [integerTag], upper: after(location))
    }
}
