import HearthModel

/// Writes values into memory that is known to be large enough, without a check at each byte.
///
/// The entry points are `ProtobufWriter.value` and `fields`, which reserve `bound` bytes first. The bound is a generous
/// sum over the value tree: the maximum size of each value's content, and ten bytes for each length.
///
/// The form is canonical: fields sorted by the UTF-8 bytes of their names, every entry with key and value, one NaN. The
/// same value tree always has the same bytes, so that stored documents can be compared as bytes.
struct ValueCursor {
    var position: UnsafeMutableRawPointer

    // MARK: Bounds

    /// The maximum size of a tag and any content except strings, bytes, arrays and maps: two messages of two numbers at
    /// most.
    static let scalarSizeMax = 40
    /// The maximum size of a tag and a length.
    static let headSizeMax = 12

    static func bound(_ value: Value) -> Int {
        switch value {
        case .string(let string), .reference(let string): headSizeMax + string.utf8.count
        case .bytes(let content): headSizeMax + content.count
        case .array(let elements): headSizeMax + bound(elements)
        case .vector(let elements): vectorSizeMax + 11 * elements.count
        case .map(let map): headSizeMax + bound(map)
        case .null, .boolean, .integer, .double, .timestamp, .geoPoint: scalarSizeMax
        }
    }

    static func bound(_ elements: [Value]) -> Int {
        var sum = 0
        for element in elements { sum += headSizeMax + bound(element) }
        return sum
    }

    static func bound(_ map: MapValue) -> Int {
        var sum = 0
        for field in map.fields { sum += 3 * headSizeMax + field.name.utf8.count + bound(field.value) }
        return sum
    }

    /// A vector without its elements: five lengths, the names of its two members, and its mark.
    private static let vectorSizeMax = 128

    // MARK: Values

    /// Writes a value's members, without a length.
    mutating func value(_ value: Value) {
        switch value {
        case .null:
            bytes(0x58, 0)
        case .boolean(let flag):
            bytes(0x08, flag ? 1 : 0)
        case .integer(let number):
            byte(0x10)
            varint(UInt64(bitPattern: number))
        case .double(let number):
            byte(0x19)
            double(number)
        case .timestamp(let time):
            byte(0x52)
            timestamp(time)
        case .string(let string):
            bytes(0x8a, 0x01)
            self.string(string)
        case .bytes(let content):
            bytes(0x92, 0x01)
            varint(UInt64(content.count))
            content.withUnsafeBytes { copy($0) }
        case .reference(let name):
            byte(0x2a)
            string(name)
        case .geoPoint(let point):
            byte(0x42)
            geoPoint(point)
        case .array(let elements):
            byte(0x4a)
            let start = beginLength()
            array(elements)
            endLength(start)
        case .vector(let elements):
            byte(0x32)
            let start = beginLength()
            vector(elements)
            endLength(start)
        case .map(let map):
            byte(0x32)
            let start = beginLength()
            fields(map, tag: 0x0a)
            endLength(start)
        }
    }

    /// Writes a length and a value.
    @inline(__always)
    mutating func nestedValue(_ element: Value) {
        let start = beginLength()
        value(element)
        endLength(start)
    }

    /// Writes an ArrayValue's members.
    mutating func array(_ elements: [Value]) {
        for element in elements {
            byte(0x0a)
            nestedValue(element)
        }
    }

    /// Writes a map's entries, each under `tag`: 0x0a in a MapValue, 0x12 in a Document or an AggregationResult.
    mutating func fields(_ map: MapValue, tag: UInt8) {
        for field in map.fields {
            byte(tag)
            let start = beginLength()
            byte(0x0a)
            string(field.name)
            byte(0x12)
            nestedValue(field.value)
            endLength(start)
        }
    }

    /// Writes the entries of the map that represents a vector.
    private mutating func vector(_ elements: [Double]) {
        Self.vectorType.withUnsafeBytes { copy($0) }
        byte(0x0a)
        let entry = beginLength()
        byte(0x0a)
        string(VectorForm.valueKey)
        byte(0x12)
        let value = beginLength()
        byte(0x4a)
        let array = beginLength()
        for element in elements {
            bytes(0x0a, 9)
            byte(0x19)
            double(element)
        }
        endLength(array)
        endLength(value)
        endLength(entry)
    }

    /// The entry `__type__` = `__vector__`.
    private static let vectorType: [UInt8] =
        [0x0a, 25, 0x0a, 8] + Array(VectorForm.typeKey.utf8) + [0x12, 13, 0x8a, 0x01, 10]
        + Array(VectorForm.typeName.utf8)

    private mutating func geoPoint(_ point: GeoPoint) {
        let start = beginLength()
        if point.latitude.bitPattern != 0 {
            byte(0x09)
            double(point.latitude)
        }
        if point.longitude.bitPattern != 0 {
            byte(0x11)
            double(point.longitude)
        }
        endLength(start)
    }

    /// Writes a length and a google.protobuf.Timestamp.
    mutating func timestamp(_ time: Timestamp) {
        let start = beginLength()
        let seconds = time.seconds
        if seconds != 0 {
            byte(0x08)
            varint(UInt64(bitPattern: seconds))
        }
        let nanoseconds = time.nanoseconds
        if nanoseconds != 0 {
            byte(0x10)
            varint(UInt64(bitPattern: nanoseconds))
        }
        endLength(start)
    }

    // MARK: Bytes

    @inline(__always)
    mutating func byte(_ byte: UInt8) {
        position.storeBytes(of: byte, as: UInt8.self)
        position += 1
    }

    @inline(__always)
    private mutating func bytes(_ first: UInt8, _ second: UInt8) {
        byte(first)
        byte(second)
    }

    @inline(__always)
    mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            byte(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        byte(UInt8(truncatingIfNeeded: rest))
    }

    @inline(__always)
    private mutating func double(_ number: Double) {
        let bits = (number.isNaN ? Double.nan : number).bitPattern
        position.storeBytes(of: bits.littleEndian, as: UInt64.self)
        position += 8
    }

    @inline(__always)
    mutating func string(_ string: String) {
        varint(UInt64(truncatingIfNeeded: string.utf8.count))
        let done: Void? = string.utf8.withContiguousStorageIfAvailable { copy(UnsafeRawBufferPointer($0)) }
        if done == nil { Array(string.utf8).withUnsafeBytes { copy($0) } }
    }

    @inline(__always)
    mutating func copy(_ content: UnsafeRawBufferPointer) {
        guard let base = content.baseAddress else { return }
        position.copyMemory(from: base, byteCount: content.count)
        position += content.count
    }

    /// Reserves one byte for a length and returns the start of the content.
    @inline(__always)
    private mutating func beginLength() -> UnsafeMutableRawPointer {
        position += 1
        return position
    }

    /// Writes the length of everything since `beginLength`; the content moves when its length takes more than a byte.
    @inline(__always)
    private mutating func endLength(_ start: UnsafeMutableRawPointer) {
        let length = position - start
        if length < 0x80 {
            (start - 1).storeBytes(of: UInt8(truncatingIfNeeded: length), as: UInt8.self)
        } else {
            insertLength(start, length)
        }
    }

    @inline(never)
    private mutating func insertLength(_ start: UnsafeMutableRawPointer, _ length: Int) {
        let extra = ProtobufWriter.varintSize(UInt64(length)) - 1
        (start + extra).copyMemory(from: start, byteCount: length)
        let end = position + extra
        position = start - 1
        varint(UInt64(length))
        position = end
    }
}
