import HearthModel

/// Stored fields to JSON, token by token, without an intermediate value tree.
extension JSONWriter {
    /// Appends stored fields as an object: `{"a":{"integerValue":"1"}}`.
    /// - Throws: `DATA_LOSS` when the bytes are malformed.
    package mutating func fields(encoded bytes: [UInt8]) throws(Status) {
        // Names in quotes and the values' member names make JSON about twice as long.
        reserve(2 * bytes.count + 64)
        do throws(Status) {
            try bytes.withBytes { buffer throws(Status) in
                var reader = ProtobufReader(buffer)
                try fields(&reader, UInt32(FieldsCodec.entryTag), depth: 1)
            }
        } catch {
            throw FieldsCodec.damaged(error)
        }
    }

    private mutating func fields(_ reader: inout ProtobufReader, _ tag: UInt32, depth: Int) throws(Status) {
        if depth > Limits.messageDepthMax { throw ProtobufReader.tooDeep() }
        byte(UInt8(ascii: "{"))
        var isFirst = true
        while let entry = try reader.nextEntry(tag: tag) {
            if !isFirst { byte(UInt8(ascii: ",")) }
            isFirst = false
            try string(reader.bytes, entry.name)
            byte(UInt8(ascii: ":"))
            try value(reader.bytes, entry.value, depth: depth + 2)
        }
        byte(UInt8(ascii: "}"))
    }

    @inline(__always)
    private mutating func string(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) throws(Status) {
        let slice = ProtobufReader.slice(bytes, range)
        guard UTF8String.isValid(slice) else { throw UTF8String.invalid() }
        string(slice)
    }

    private mutating func value(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, depth: Int
    ) throws(Status) {
        if depth > Limits.messageDepthMax { throw ProtobufReader.tooDeep() }
        var reader = ProtobufReader(bytes, range)
        if reader.isAtEnd { throw ValueError.unset() }
        switch try reader.readTag() {
        case ProtobufReader.ValueTag.string:
            raw("{\"stringValue\":")
            try string(bytes, try reader.readRange())
        case ProtobufReader.ValueTag.integer:
            raw("{\"integerValue\":")
            quotedInteger(Int64(bitPattern: try reader.readVarint()))
        case ProtobufReader.ValueTag.double:
            raw("{\"doubleValue\":")
            double(Double(bitPattern: try reader.readFixed64()))
        case ProtobufReader.ValueTag.boolean:
            raw("{\"booleanValue\":")
            bool(try reader.readVarint() != 0)
        case ProtobufReader.ValueTag.null:
            raw("{\"nullValue\":null")
        case ProtobufReader.ValueTag.timestamp:
            raw("{\"timestampValue\":")
            let time = try reader.readNestedTimestampMessage().timestamp()
            timestamp(time)
        case ProtobufReader.ValueTag.bytes:
            raw("{\"bytesValue\":")
            base64(reader.slice(try reader.readRange()))
        case ProtobufReader.ValueTag.reference:
            raw("{\"referenceValue\":")
            try string(bytes, try reader.readRange())
        case ProtobufReader.ValueTag.geoPoint:
            raw("{\"geoPointValue\":")
            let point = try reader.readNestedGeoPoint()
            geoPoint(point.latitude, point.longitude)
        case ProtobufReader.ValueTag.array:
            raw("{\"arrayValue\":")
            try array(bytes, try reader.readRange(), depth: depth + 1)
        case ProtobufReader.ValueTag.map:
            raw("{\"mapValue\":{")
            var entries = ProtobufReader(bytes, try reader.readRange())
            if !entries.isAtEnd || writesEmptyMembers {
                raw("\"fields\":")
                try fields(&entries, ProtobufReader.mapEntryTag, depth: depth + 1)
            }
            byte(UInt8(ascii: "}"))
        default:
            throw ValueError.unset()
        }
        byte(UInt8(ascii: "}"))
    }

    private mutating func array(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, depth: Int
    ) throws(Status) {
        byte(UInt8(ascii: "{"))
        var reader = ProtobufReader(bytes, range)
        var isFirst = true
        while !reader.isAtEnd {
            let tag = try reader.readTag()
            if tag != 1 << 3 | 2 {
                try reader.skip(tag)
                continue
            }
            if isFirst { raw("\"values\":[") } else { byte(UInt8(ascii: ",")) }
            isFirst = false
            try value(bytes, try reader.readRange(), depth: depth + 1)
        }
        if isFirst, writesEmptyMembers { raw("\"values\":[") }
        if !isFirst || writesEmptyMembers { byte(UInt8(ascii: "]")) }
        byte(UInt8(ascii: "}"))
    }
}
