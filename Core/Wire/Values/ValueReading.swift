import HearthModel

/// google.firestore.v1.Value and the maps that hold it, from the binary form to the model.
extension ProtobufReader {
    /// Tags of Value's members: `number << 3 | wireType`.
    enum ValueTag {
        static let boolean: UInt32 = 1 << 3
        static let integer: UInt32 = 2 << 3
        static let double: UInt32 = 3 << 3 | 1
        static let reference: UInt32 = 5 << 3 | 2
        static let map: UInt32 = 6 << 3 | 2
        static let geoPoint: UInt32 = 8 << 3 | 2
        static let array: UInt32 = 9 << 3 | 2
        static let timestamp: UInt32 = 10 << 3 | 2
        static let null: UInt32 = 11 << 3
        static let string: UInt32 = 17 << 3 | 2
        static let bytes: UInt32 = 18 << 3 | 2
        static let fieldReference: UInt32 = 19 << 3 | 2
        static let function: UInt32 = 20 << 3 | 2
        static let pipeline: UInt32 = 21 << 3 | 2
        static let variableReference: UInt32 = 22 << 3 | 2

        /// The member's name when it may stand in pipelines only.
        static func unsupportedName(_ tag: UInt32) -> StaticString? {
            switch tag {
            case fieldReference: "FIELD_REFERENCE_VALUE"
            case function: "FUNCTION_VALUE"
            case pipeline: "PIPELINE_VALUE"
            case variableReference: "VARIABLE_REFERENCE_VALUE"
            default: nil
            }
        }
    }

    /// Reads a length and the value in it.
    /// - Parameter depth: the levels of messages around the value.
    mutating func readNestedValue(depth: Int) throws(Status) -> Value {
        let range = try readRange()
        let outer = end
        position = range.lowerBound
        end = range.upperBound
        let value = try readValue(depth: depth)
        end = outer
        return value
    }

    /// Reads a Value up to the reader's end. Of several members the last one counts.
    mutating func readValue(depth: Int) throws(Status) -> Value {
        if depth > Limits.messageDepthMax { throw Self.tooDeep() }
        if isAtEnd { throw ValueError.unset() }
        var value = try readValueMember(depth: depth)
        while !isAtEnd {
            if let later = try readValueMember(depth: depth) { value = later }
        }
        guard let value else { throw ValueError.unset() }
        return value
    }

    @inline(__always)
    private mutating func readValueMember(depth: Int) throws(Status) -> Value? {
        let tag = try readTag()
        switch tag {
        case ValueTag.string:
            return .string(try readString())
        case ValueTag.integer:
            return .integer(Int64(bitPattern: try readVarint()))
        case ValueTag.double:
            return .double(Self.canonical(try readFixed64()))
        case ValueTag.boolean:
            return .boolean(try readVarint() != 0)
        case ValueTag.null:
            _ = try readVarint()
            return .null
        case ValueTag.timestamp:
            return .timestamp(try readNestedTimestamp())
        case ValueTag.bytes:
            return .bytes(try readBytes())
        case ValueTag.reference:
            return .reference(try readString())
        case ValueTag.map:
            return try readNestedMapValue(depth: depth + 1)
        case ValueTag.array:
            return .array(try readNestedArray(depth: depth + 1))
        case ValueTag.geoPoint:
            return .geoPoint(try readNestedGeoPoint())
        default:
            if let name = ValueTag.unsupportedName(tag) { throw ValueError.unsupported(name) }
            try skip(tag, depth: depth)
            return nil
        }
    }

    /// One NaN for all: the payload has no meaning in Firestore, and equal documents have equal bytes.
    @inline(__always)
    static func canonical(_ bits: UInt64) -> Double {
        let number = Double(bitPattern: bits)
        return number.isNaN ? .nan : number
    }

    // MARK: Arrays and maps

    mutating func readNestedArray(depth: Int) throws(Status) -> [Value] {
        let range = try readRange()
        let outer = end
        position = range.lowerBound
        end = range.upperBound
        if depth > Limits.messageDepthMax { throw Self.tooDeep() }
        var elements: [Value] = []
        while !isAtEnd {
            let tag = try readTag()
            if tag == 1 << 3 | 2 {
                elements.append(try readNestedValue(depth: depth + 1))
            } else {
                try skip(tag, depth: depth)
            }
        }
        end = outer
        return elements
    }

    private mutating func readNestedMapValue(depth: Int) throws(Status) -> Value {
        let range = try readRange()
        let outer = end
        position = range.lowerBound
        end = range.upperBound
        var fields = MapBuilder()
        try readMap(tag: 1 << 3 | 2, depth: depth, into: &fields)
        end = outer
        return fields.takeValue()
    }

    /// Reads map entries under `tag` up to the reader's end; other fields are skipped.
    mutating func readMap(tag entryTag: UInt32, depth: Int, into fields: inout MapBuilder) throws(Status) {
        if depth > Limits.messageDepthMax { throw Self.tooDeep() }
        while !isAtEnd {
            let tag = try readTag()
            if tag == entryTag {
                try readMapEntry(depth: depth + 1, into: &fields)
            } else {
                try skip(tag, depth: depth)
            }
        }
    }

    /// Reads one entry of map<string, Value>: its length, the key and the value, either of which may be missing.
    mutating func readMapEntry(depth: Int, into fields: inout MapBuilder) throws(Status) {
        let range = try readRange()
        let outer = end
        position = range.lowerBound
        end = range.upperBound
        if depth > Limits.messageDepthMax { throw Self.tooDeep() }
        var name = ""
        var value: Value?
        while !isAtEnd {
            let tag = try readTag()
            switch tag {
            case 1 << 3 | 2: name = try readString()
            case 2 << 3 | 2: value = try readNestedValue(depth: depth + 1)
            default: try skip(tag, depth: depth)
            }
        }
        guard let value else { throw ValueError.unset() }
        fields.append(name, value)
        end = outer
    }

    // MARK: Leaves

    private mutating func readNestedTimestamp() throws(Status) -> Timestamp {
        let message = try readNestedTimestampMessage()
        return try message.timestamp()
    }

    mutating func readNestedTimestampMessage() throws(Status) -> TimestampMessage {
        let range = try readRange()
        let outer = end
        position = range.lowerBound
        end = range.upperBound
        var message = TimestampMessage()
        while !isAtEnd {
            let tag = try readTag()
            switch tag {
            case 1 << 3: message.seconds = Int64(bitPattern: try readVarint())
            case 2 << 3: message.nanos = Int32(truncatingIfNeeded: try readVarint())
            default: try skip(tag)
            }
        }
        end = outer
        return message
    }

    mutating func readNestedGeoPoint() throws(Status) -> GeoPoint {
        let range = try readRange()
        let outer = end
        position = range.lowerBound
        end = range.upperBound
        var point = GeoPoint(latitude: 0, longitude: 0)
        while !isAtEnd {
            let tag = try readTag()
            switch tag {
            case 1 << 3 | 1: point.latitude = Self.canonical(try readFixed64())
            case 2 << 3 | 1: point.longitude = Self.canonical(try readFixed64())
            default: try skip(tag)
            }
        }
        end = outer
        return point
    }
}

/// What is wrong with a Value, in the service's words.
enum ValueError {
    @inline(never)
    static func unset() -> Status { .invalidArgument("Cannot convert firestore.v1.Value with type unset.") }

    @inline(never)
    static func unsupported(_ name: StaticString) -> Status {
        .invalidArgument("Value type is not supported: \(name)")
    }
}
