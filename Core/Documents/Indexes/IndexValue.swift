import HearthModel

/// The order-preserving byte form of values, in index entries, cursors and sort keys.
///
/// For any two values a and b: `encode(a) < encode(b)` by bytes exactly when a sorts before b, equal exactly when they
/// are equivalent, and no encoding is a prefix of another. So concatenations compare like tuples, and complementing
/// every byte gives the descending order.
///
/// Format, by first byte:
///
///     null 05 · false 0A 00 · true 0A 01 · NaN 0D · number 0F NUM · timestamp 14 and (µs + 2^63) in 8 bytes
///     string 19 STR · bytes 1E STR · reference 25 SEG… 02 · geo point 2D NUM NUM · array 32 value… 02
///     vector 35, dimension in 4 bytes, then 0F NUM each (0D for NaN) · map 37 (19 STR value)… 02
///     STR:  00 becomes 00 FF; ends with 00 01
///     NUM:  the largest double not above the number, 8 bytes big-endian, sign bit flipped if positive, all bits flipped
///           if negative; from 2^53 to 2^63 in magnitude two more bytes: the number less that double (0…1023)
///     SEG:  10 and (n + 2^63) in 8 bytes for an id `__id<n>__`, else 20 STR
///
/// Integers are big-endian. The terminator 02 lies below every tag, so that the shorter comes first.
///
/// An encoding longer than its limit is cut there, without a mark: complete encodings are prefix-free and not longer
/// than the limit, so a cut one never is a prefix of a complete one or the other way round. Entries that are cut must
/// be compared by their documents (`isCut`).
package enum IndexValue {
    package enum Tag {
        package static let null: UInt8 = 0x05
        package static let boolean: UInt8 = 0x0A
        package static let nan: UInt8 = 0x0D
        package static let number: UInt8 = 0x0F
        package static let timestamp: UInt8 = 0x14
        package static let string: UInt8 = 0x19
        package static let bytes: UInt8 = 0x1E
        package static let reference: UInt8 = 0x25
        package static let geoPoint: UInt8 = 0x2D
        package static let array: UInt8 = 0x32
        package static let vector: UInt8 = 0x35
        package static let map: UInt8 = 0x37
        package static let terminator: UInt8 = 0x02
        static let numericSegment: UInt8 = 0x10
        package static let stringSegment: UInt8 = 0x20
    }

    /// Bytes after which the encoding of an array, a vector or a map is cut. Queries rarely compare whole containers;
    /// short entries keep writes cheap.
    static let containerSizeBytesMax = 256

    package static func encode(_ value: Value) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(24)
        append(value, to: &bytes)
        return bytes
    }

    /// The form in an index: cut at its limit.
    package static func appendCut(_ value: Value, to bytes: inout [UInt8]) {
        let start = bytes.count
        append(value, to: &bytes)
        let limit = sizeMax(tag: bytes[start])
        if bytes.count - start > limit { bytes.removeLast(bytes.count - start - limit) }
    }

    static func sizeMax(tag: UInt8) -> Int {
        switch tag {
        case Tag.array, Tag.vector, Tag.map: containerSizeBytesMax
        default: Limits.indexedValueSizeBytesMax
        }
    }

    package static func append(_ value: Value, to bytes: inout [UInt8]) {
        switch value {
        case .null:
            bytes.append(Tag.null)
        case .boolean(let flag):
            bytes.append(Tag.boolean)
            bytes.append(flag ? 1 : 0)
        case .integer(let number):
            bytes.append(Tag.number)
            appendNumber(number, to: &bytes)
        case .double(let number):
            appendDouble(number, to: &bytes)
        case .timestamp(let time):
            bytes.append(Tag.timestamp)
            appendBigEndian(UInt64(bitPattern: time.microseconds) ^ (1 << 63), to: &bytes)
        case .string(let string):
            bytes.append(Tag.string)
            appendString(string, to: &bytes)
        case .bytes(let content):
            bytes.append(Tag.bytes)
            content.withUnsafeBytes { appendString($0, to: &bytes) }
        case .reference(let name):
            bytes.append(Tag.reference)
            appendReference(name, to: &bytes)
        case .geoPoint(let point):
            bytes.append(Tag.geoPoint)
            appendNumber(point.latitude, to: &bytes)
            appendNumber(point.longitude, to: &bytes)
        case .array(let elements):
            bytes.append(Tag.array)
            for element in elements { append(element, to: &bytes) }
            bytes.append(Tag.terminator)
        case .vector(let elements):
            bytes.append(Tag.vector)
            let dimension = UInt32(truncatingIfNeeded: elements.count)
            for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: dimension >> UInt32(shift))) }
            for element in elements { appendDouble(element, to: &bytes) }
        case .map(let map):
            bytes.append(Tag.map)
            for field in map.fields {
                bytes.append(Tag.string)
                appendString(field.name, to: &bytes)
                append(field.value, to: &bytes)
            }
            bytes.append(Tag.terminator)
        }
    }

    private static func appendDouble(_ number: Double, to bytes: inout [UInt8]) {
        if number.isNaN {
            bytes.append(Tag.nan)
        } else {
            bytes.append(Tag.number)
            appendNumber(number, to: &bytes)
        }
    }

    // MARK: Numbers

    private static let exactLimit = 0x1p53

    private static func appendNumber(_ number: Double, to bytes: inout [UInt8]) {
        appendOrdered(number, to: &bytes)
        if abs(number) >= exactLimit, abs(number) <= 0x1p63 {
            bytes.append(0)
            bytes.append(0)
        }
    }

    private static func appendNumber(_ number: Int64, to bytes: inout [UInt8]) {
        var floor = Double(number)
        // Conversion rounds to the nearest; a value that was rounded up is decreased by one double. 2^63 itself is out
        // of Int64.
        if floor >= 0x1p63 || Int64(floor) > number { floor = floor.nextDown }
        appendOrdered(floor, to: &bytes)
        if abs(floor) >= exactLimit {
            let rest = UInt16(truncatingIfNeeded: number - Int64(floor))
            bytes.append(UInt8(rest >> 8))
            bytes.append(UInt8(rest & 0xFF))
        }
    }

    private static func appendOrdered(_ number: Double, to bytes: inout [UInt8]) {
        let bits = (number == 0 ? 0.0 : number).bitPattern
        appendBigEndian(bits >> 63 == 0 ? bits ^ (1 << 63) : ~bits, to: &bytes)
    }

    package static func appendBigEndian(_ number: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    static func readBigEndian(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    // MARK: Strings and names

    package static func appendString(_ string: String, to bytes: inout [UInt8]) {
        var string = string
        string.withUTF8 { appendString(UnsafeRawBufferPointer($0), to: &bytes) }
    }

    static func appendString(_ string: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
        if string.contains(0) {
            for byte in string {
                bytes.append(byte)
                if byte == 0 { bytes.append(0xFF) }
            }
        } else {
            bytes.append(contentsOf: string)
        }
        bytes.append(0)
        bytes.append(1)
    }

    package static func appendSegment(_ segment: String, to bytes: inout [UInt8]) {
        if let number = ResourcePath.numericID(segment) {
            bytes.append(Tag.numericSegment)
            appendBigEndian(UInt64(bitPattern: number) ^ (1 << 63), to: &bytes)
        } else {
            bytes.append(Tag.stringSegment)
            appendString(segment, to: &bytes)
        }
    }

    /// References order by project, database, then the segments of the path; the words between them are left out.
    private static func appendReference(_ name: String, to bytes: inout [UInt8]) {
        let segments = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() where index != 0 && index != 2 && index != 4 {
            appendSegment(String(Substring(segment)), to: &bytes)
        }
        bytes.append(Tag.terminator)
    }

    // MARK: Reading

    /// The end of the value that begins at `start`: complete, or cut at its limit.
    /// - Parameter complemented: whether the bytes are in descending form.
    /// - Returns: nil when the bytes are not an encoding.
    package static func end(of bytes: [UInt8], from start: Int, complemented: Bool) -> (end: Int, isCut: Bool)? {
        guard start < bytes.count else { return nil }
        let flip: UInt8 = complemented ? 0xFF : 0
        let limit = start + sizeMax(tag: bytes[start] ^ flip)
        return bytes.withUnsafeBytes { bytes in
            var reader = Scanner(bytes: bytes, position: start, limit: min(limit, bytes.count), flip: flip)
            if reader.skipValue(depth: 0) { return (reader.position, false) }
            return limit <= bytes.count && reader.ranOut ? (limit, true) : nil
        }
    }

    /// Walks over an encoding without building values.
    private struct Scanner {
        let bytes: UnsafeRawBufferPointer
        var position: Int
        let limit: Int
        let flip: UInt8
        var ranOut = false

        mutating func read() -> UInt8? {
            guard position < limit else {
                ranOut = true
                return nil
            }
            position += 1
            return bytes[position - 1] ^ flip
        }

        mutating func skip(_ count: Int) -> Bool {
            guard position + count <= limit else {
                ranOut = true
                return false
            }
            position += count
            return true
        }

        mutating func skipString() -> Bool {
            while let byte = read() {
                guard byte == 0 else { continue }
                guard let next = read() else { return false }
                if next == 1 { return true }
                if next != 0xFF { return false }
            }
            return false
        }

        mutating func skipNumber() -> Bool {
            guard position + 8 <= limit else {
                ranOut = true
                return false
            }
            let stored = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            position += 8
            let bits = flip == 0 ? stored : ~stored
            let number = Double(bitPattern: bits >> 63 == 1 ? bits ^ (1 << 63) : ~bits)
            return abs(number) >= exactLimit && abs(number) <= 0x1p63 ? skip(2) : true
        }

        mutating func skipValue(depth: Int) -> Bool {
            guard depth <= Limits.messageDepthMax, let tag = read() else { return false }
            switch tag {
            case Tag.null, Tag.nan: return true
            case Tag.boolean: return skip(1)
            case Tag.number: return skipNumber()
            case Tag.timestamp: return skip(8)
            case Tag.string, Tag.bytes: return skipString()
            case Tag.reference: return skipSegments()
            case Tag.geoPoint: return skipNumber() && skipNumber()
            case Tag.vector: return skipVector(depth: depth)
            case Tag.array, Tag.map:
                while position < limit {
                    if bytes[position] ^ flip == Tag.terminator { return skip(1) }
                    if tag == Tag.map {
                        guard skip(1), skipString() else { return false }
                    }
                    guard skipValue(depth: depth + 1) else { return false }
                }
                ranOut = true
                return false
            default: return false
            }
        }

        mutating func skipSegments() -> Bool {
            while let tag = read() {
                switch tag {
                case Tag.terminator: return true
                case Tag.numericSegment: if !skip(8) { return false }
                case Tag.stringSegment: if !skipString() { return false }
                default: return false
                }
            }
            return false
        }

        mutating func skipVector(depth: Int) -> Bool {
            var dimension = 0
            for _ in 0..<4 {
                guard let byte = read() else { return false }
                dimension = dimension << 8 | Int(byte)
            }
            for _ in 0..<dimension {
                guard skipValue(depth: depth + 1) else { return false }
            }
            return true
        }
    }

    /// The number at the start of an ascending encoding: an integer if its payload is one, otherwise a double. Nil when
    /// it is not a number.
    package static func decodeNumber(_ bytes: [UInt8], from start: Int) -> (double: Double, rest: Int64)? {
        guard start + 9 <= bytes.count, bytes[start] == Tag.number else {
            return start < bytes.count && bytes[start] == Tag.nan ? (.nan, 0) : nil
        }
        let bits = readBigEndian(bytes[(start + 1)...])
        let number = Double(bitPattern: bits >> 63 == 1 ? bits ^ (1 << 63) : ~bits)
        guard abs(number) >= exactLimit, abs(number) <= 0x1p63, start + 11 <= bytes.count else { return (number, 0) }
        return (number, Int64(bytes[start + 9]) << 8 | Int64(bytes[start + 10]))
    }
}
