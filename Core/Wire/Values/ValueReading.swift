import HearthModel

/// google.firestore.v1.Value and the maps that hold it, from the binary form to the model.
extension ProtobufReader {
    /// Tags of Value's members: `number << 3 | wireType`.
    package enum ValueTag {
        package static let boolean: UInt32 = 1 << 3
        package static let integer: UInt32 = 2 << 3
        package static let double: UInt32 = 3 << 3 | 1
        package static let reference: UInt32 = 5 << 3 | 2
        package static let map: UInt32 = 6 << 3 | 2
        package static let geoPoint: UInt32 = 8 << 3 | 2
        package static let array: UInt32 = 9 << 3 | 2
        package static let timestamp: UInt32 = 10 << 3 | 2
        package static let null: UInt32 = 11 << 3
        package static let string: UInt32 = 17 << 3 | 2
        package static let bytes: UInt32 = 18 << 3 | 2
        package static let fieldReference: UInt32 = 19 << 3 | 2
        package static let function: UInt32 = 20 << 3 | 2
        package static let pipeline: UInt32 = 21 << 3 | 2
        package static let variableReference: UInt32 = 22 << 3 | 2

        /// The member's name when only pipelines allow it.
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
        let value = try readValueMember(depth: depth)
        if isAtEnd, let value { return value }
        return try readLaterMembers(value, depth: depth)
    }

    @inline(never)
    private mutating func readLaterMembers(_ first: Value?, depth: Int) throws(Status) -> Value {
        var value = first
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
    package static func canonical(_ bits: UInt64) -> Double {
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
        elements.reserveCapacity(countFields(1 << 3 | 2))
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
        fields.reserve(countFields(entryTag))
        var previousKey = UnsafeRawBufferPointer(start: nil, count: 0)
        while !isAtEnd {
            let tag = try readTag()
            if tag == entryTag {
                try readMapEntry(depth: depth + 1, after: &previousKey, into: &fields)
            } else {
                try skip(tag, depth: depth)
            }
        }
    }

    /// Reads one entry of map<string, Value>: its length, the key and the value.
    /// - Parameter previousKey: the key of the previous entry, empty for the first; becomes this entry's key.
    @inline(__always)
    mutating func readMapEntry(
        depth: Int, after previousKey: inout UnsafeRawBufferPointer, into fields: inout MapBuilder
    ) throws(Status) {
        let entry = try readRange()
        let outer = end
        position = entry.lowerBound
        end = entry.upperBound
        if depth > Limits.messageDepthMax { throw Self.tooDeep() }
        // Writers put the key first, followed by the value; other forms take the slow path.
        if !isAtEnd, try readTag() == 1 << 3 | 2 {
            let key = slice(try readRange())
            let afterKey = position
            if !isAtEnd, try readTag() == 2 << 3 | 2 {
                let value = try readNestedValue(depth: depth + 1)
                let name = try UTF8String.string(key)
                if isAtEnd {
                    // Comparing the keys in the buffer is cheaper than comparing strings.
                    let isBehind =
                        previousKey.baseAddress == nil ? fields.isEmpty : UTF8Order.compare(previousKey, key) < 0
                    fields.append(name, value, isBehindLast: isBehind)
                    previousKey = key
                } else {
                    // The value must not be read again: that would double the work at each level.
                    try readMapEntry(name, value, depth: depth, into: &fields)
                }
                end = outer
                return
            }
            position = afterKey
            try readMapEntry(try UTF8String.string(key), nil, depth: depth, into: &fields)
        } else {
            position = entry.lowerBound
            try readMapEntry("", nil, depth: depth, into: &fields)
        }
        end = outer
    }

    /// The slow path: an entry with its parts in another order, with missing parts, or with unknown fields.
    @inline(never)
    private mutating func readMapEntry(
        _ firstName: String, _ firstValue: Value?, depth: Int, into fields: inout MapBuilder
    ) throws(Status) {
        var name = firstName
        var value = firstValue
        while !isAtEnd {
            let tag = try readTag()
            switch tag {
            case 1 << 3 | 2: name = try readString()
            case 2 << 3 | 2: value = try readNestedValue(depth: depth + 1)
            default: try skip(tag, depth: depth)
            }
        }
        guard let value else { throw ValueError.unset() }
        // Its order relative to the others is not worth a comparison: the map is sorted.
        fields.append(name, value, isBehindLast: false)
    }

    /// The number of consecutive fields with a tag up to the end: the capacity to reserve. Malformed bytes end the
    /// count, and so does a limit, because an empty field costs its sender two bytes but many here.
    @inline(__always)
    private func countFields(_ tag: UInt32) -> Int {
        var position = position
        var count = 0
        while end &- position >= 2, bytes[position] == UInt8(truncatingIfNeeded: tag), count < 1024 {
            var length = Int(bytes[position &+ 1])
            position &+= 2
            if length >= 0x80 {
                // Only one-byte lengths are read here: a longer one ends the count.
                guard position < end, bytes[position] < 0x80 else { return count &+ 1 }
                length = length & 0x7f | Int(bytes[position]) << 7
                position &+= 1
            }
            position &+= length
            count &+= 1
        }
        return count
    }

    // MARK: Leaves

    private mutating func readNestedTimestamp() throws(Status) -> Timestamp {
        let message = try readNestedTimestampMessage()
        return try message.timestamp()
    }

    package mutating func readNestedTimestampMessage() throws(Status) -> TimestampMessage {
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

    package mutating func readNestedGeoPoint() throws(Status) -> GeoPoint {
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
