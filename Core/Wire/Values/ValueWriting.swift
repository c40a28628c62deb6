import HearthModel

/// google.firestore.v1.Value and the maps that hold it, from the model to the binary form.
///
/// The form is canonical: fields sorted by the UTF-8 bytes of their names, every entry with key and value, one NaN. The
/// same value tree always gives the same bytes, so that stored documents can be compared as bytes.
extension ProtobufWriter {
    /// Appends a value's members, without a length.
    public mutating func value(_ value: Value) {
        switch value {
        case .null:
            bytes.append(0x58)
            bytes.append(0)
        case .boolean(let flag):
            bytes.append(0x08)
            bytes.append(flag ? 1 : 0)
        case .integer(let number):
            bytes.append(0x10)
            varint(UInt64(bitPattern: number))
        case .double(let number):
            bytes.append(0x19)
            double(number)
        case .timestamp(let time):
            bytes.append(0x52)
            timestamp(time)
        case .string(let text):
            bytes.append(0x8a)
            bytes.append(0x01)
            string(text)
        case .bytes(let content):
            bytes.append(0x92)
            bytes.append(0x01)
            lengthDelimited(content)
        case .reference(let name):
            bytes.append(0x2a)
            string(name)
        case .geoPoint(let point):
            bytes.append(0x42)
            geoPoint(point)
        case .array(let elements):
            bytes.append(0x4a)
            let start = beginLength()
            array(elements)
            endLength(start)
        case .vector(let elements):
            bytes.append(0x32)
            let start = beginLength()
            vector(elements)
            endLength(start)
        case .map(let map):
            bytes.append(0x32)
            let start = beginLength()
            fields(map, tag: 0x0a)
            endLength(start)
        }
    }

    /// Appends a length and a value.
    @inline(__always)
    mutating func nestedValue(_ element: Value) {
        let start = beginLength()
        value(element)
        endLength(start)
    }

    /// Appends an ArrayValue's members.
    mutating func array(_ elements: [Value]) {
        for element in elements {
            bytes.append(0x0a)
            nestedValue(element)
        }
    }

    /// Appends a map's entries, each under `tag`: 0x0a in a MapValue, 0x12 in a Document or an AggregationResult.
    mutating func fields(_ map: MapValue, tag: UInt8) {
        for field in map.fields {
            bytes.append(tag)
            let start = beginLength()
            bytes.append(0x0a)
            string(field.name)
            bytes.append(0x12)
            nestedValue(field.value)
            endLength(start)
        }
    }

    /// Appends the entries of the map that spells a vector.
    private mutating func vector(_ elements: [Double]) {
        bytes.append(contentsOf: Self.vectorType)
        bytes.append(0x0a)
        let entry = beginLength()
        bytes.append(0x0a)
        string(VectorForm.valueKey)
        bytes.append(0x12)
        let value = beginLength()
        bytes.append(0x4a)
        let array = beginLength()
        reserve(elements.count * 11)
        for element in elements {
            bytes.append(0x0a)
            bytes.append(9)
            bytes.append(0x19)
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

    @inline(__always)
    mutating func double(_ number: Double) {
        fixed64((number.isNaN ? Double.nan : number).bitPattern)
    }

    private mutating func geoPoint(_ point: GeoPoint) {
        let start = beginLength()
        if point.latitude.bitPattern != 0 {
            bytes.append(0x09)
            double(point.latitude)
        }
        if point.longitude.bitPattern != 0 {
            bytes.append(0x11)
            double(point.longitude)
        }
        endLength(start)
    }

    /// Appends a length and a google.protobuf.Timestamp.
    mutating func timestamp(_ time: Timestamp) {
        let start = beginLength()
        let seconds = time.seconds
        if seconds != 0 {
            bytes.append(0x08)
            varint(UInt64(bitPattern: seconds))
        }
        let nanoseconds = time.nanoseconds
        if nanoseconds != 0 {
            bytes.append(0x10)
            varint(UInt64(bitPattern: nanoseconds))
        }
        endLength(start)
    }
}
