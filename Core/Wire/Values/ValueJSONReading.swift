import HearthModel

/// google.firestore.v1.Value and the maps that hold it, from proto3 JSON to the model.
extension JSONFieldDecoder {
    /// The members of Value.
    private enum Member {
        case null, boolean, integer, double, timestamp, string, bytes, reference, geoPoint, array, map
        case unsupported(StaticString)
    }

    /// The member of Value that the current key names. The first letter leaves one or two candidates.
    private func member() -> (member: Member, name: StaticString)? {
        func candidate(_ name: StaticString, _ member: Member) -> (Member, StaticString)? {
            keyMatches(name) ? (member, name) : nil
        }
        switch UInt8(truncatingIfNeeded: keyStart) {
        case UInt8(ascii: "s"): return candidate("string_value", .string)
        case UInt8(ascii: "i"): return candidate("integer_value", .integer)
        case UInt8(ascii: "b"):
            return candidate("boolean_value", .boolean) ?? candidate("bytes_value", .bytes)
        case UInt8(ascii: "d"): return candidate("double_value", .double)
        case UInt8(ascii: "m"): return candidate("map_value", .map)
        case UInt8(ascii: "a"): return candidate("array_value", .array)
        case UInt8(ascii: "t"): return candidate("timestamp_value", .timestamp)
        case UInt8(ascii: "n"): return candidate("null_value", .null)
        case UInt8(ascii: "r"): return candidate("reference_value", .reference)
        case UInt8(ascii: "g"): return candidate("geo_point_value", .geoPoint)
        case UInt8(ascii: "f"):
            return candidate("field_reference_value", .unsupported("FIELD_REFERENCE_VALUE"))
                ?? candidate("function_value", .unsupported("FUNCTION_VALUE"))
        case UInt8(ascii: "p"): return candidate("pipeline_value", .unsupported("PIPELINE_VALUE"))
        case UInt8(ascii: "v"):
            return candidate("variable_reference_value", .unsupported("VARIABLE_REFERENCE_VALUE"))
        default: return nil
        }
    }

    /// Reads a Value at the position.
    mutating func readValue() throws(Status) -> Value {
        guard reader.peek() == UInt8(ascii: "{") else {
            throw try invalidValue("type.googleapis.com/google.firestore.v1.Value")
        }
        try reader.openContainer(UInt8(ascii: "{"))
        var value: Value?
        var isFirst = true
        while let key = try reader.nextMember(&isFirst) {
            try setKey(key)
            guard let (member, name) = member() else { throw unknownName() }
            if try takeNull(member) { continue }
            if value != nil {
                throw fail(
                    .value("oneof", "oneof field 'value_type' is already set. Cannot set '\(string(key.range))'"))
            }
            do throws(Status) {
                value = try readMember(member)
            } catch {
                note(name)
                throw error
            }
        }
        guard let value else { throw ValueError.unset() }
        return value
    }

    /// Takes a null that means an absent member; only for `nullValue` it is a value.
    private mutating func takeNull(_ member: Member) throws(Status) -> Bool {
        if case .null = member { return false }
        return try reader.takeNull()
    }

    private mutating func readMember(_ member: Member) throws(Status) -> Value {
        switch member {
        case .null: try readNullValue()
        case .boolean: .boolean(try readBool())
        case .integer: .integer(try readInt64())
        case .double: .double(try readDouble())
        case .timestamp: .timestamp(try readTimestamp().timestamp())
        case .string: .string(try readString())
        case .bytes: .bytes(try readBytes())
        case .reference: .reference(try readString())
        case .geoPoint: .geoPoint(try readGeoPoint())
        case .array: .array(try readArrayValue())
        case .map: try readMapValue()
        case .unsupported(let name): throw ValueError.unsupported(name)
        }
    }

    /// null, or the enumeration's only member.
    private mutating func readNullValue() throws(Status) -> Value {
        if try reader.takeNull() { return .null }
        let start = reader.position
        switch reader.peek() {
        case UInt8(ascii: "\""): if try reader.readString() == "NULL_VALUE" { return .null }
        case UInt8(ascii: "0"): if try readInt32() == 0 { return .null }
        default: break
        }
        reader.rewind(to: start)
        throw try invalidValue("type.googleapis.com/google.protobuf.NullValue")
    }

    mutating func readTimestamp() throws(Status) -> TimestampMessage {
        if takesObjectForms, reader.peek() == UInt8(ascii: "{") { return try readTimestampObject() }
        guard reader.peek() == UInt8(ascii: "\"") else {
            throw try invalidValue("type.googleapis.com/google.protobuf.Timestamp")
        }
        let start = reader.position
        let token = try reader.readStringToken()
        // An instant contains no character that must be escaped, but may be written with escapes.
        let unescaped = token.hasEscapes ? try reader.unescaped(token) : []
        let instant =
            token.hasEscapes
            ? unescaped.withUnsafeBytes { RFC3339.parse($0) }
            : RFC3339.parse(ProtobufReader.slice(reader.bytes, token.range))
        guard let instant else {
            throw fail(
                .value(
                    "type.googleapis.com/google.protobuf.Timestamp",
                    "Invalid time format: \(self.string(start..<reader.position))"))
        }
        return TimestampMessage(seconds: instant.seconds, nanos: instant.nanoseconds)
    }

    private mutating func readGeoPoint() throws(Status) -> GeoPoint {
        var point = GeoPoint(latitude: 0, longitude: 0)
        try readObject("google.type.LatLng") { decoder throws(Status) in
            if decoder.keyMatches("latitude") {
                if try !decoder.reader.takeNull() {
                    point.latitude = try decoder.reading("latitude") { decoder throws(Status) in
                        try decoder.readDouble()
                    }
                }
            } else if decoder.keyMatches("longitude") {
                if try !decoder.reader.takeNull() {
                    point.longitude = try decoder.reading("longitude") { decoder throws(Status) in
                        try decoder.readDouble()
                    }
                }
            } else {
                throw decoder.unknownName()
            }
        }
        return point
    }

    /// Reads an ArrayValue: `{"values": […]}`.
    mutating func readArrayValue() throws(Status) -> [Value] {
        var elements: [Value] = []
        try readObject("google.firestore.v1.ArrayValue") { decoder throws(Status) in
            guard decoder.keyMatches("values") else { throw decoder.unknownName() }
            if try decoder.reader.takeNull() { return }
            try decoder.readElements(into: &elements)
        }
        return elements
    }

    private mutating func readElements(into elements: inout [Value]) throws(Status) {
        guard reader.peek() == UInt8(ascii: "[") else {
            throw try invalidValue("type.googleapis.com/google.firestore.v1.Value")
        }
        try reader.openContainer(UInt8(ascii: "["))
        var isFirst = true
        var index = 0
        while try reader.nextElement(&isFirst) {
            do throws(Status) {
                elements.append(try readValue())
            } catch {
                note(index: index)
                note("values")
                throw error
            }
            index += 1
        }
    }

    /// Reads a MapValue: `{"fields": {…}}`.
    private mutating func readMapValue() throws(Status) -> Value {
        var fields = MapBuilder()
        try readObject("google.firestore.v1.MapValue") { decoder throws(Status) in
            guard decoder.keyMatches("fields") else { throw decoder.unknownName() }
            if try decoder.reader.takeNull() { return }
            do throws(Status) {
                try decoder.readFields(into: &fields)
            } catch {
                decoder.note("fields")
                throw error
            }
        }
        let map = try takeUnique(&fields)
        if let vector = MapBuilder.vector(map) { return .vector(vector) }
        return .map(map)
    }

    /// Reads the entries of a map<string, Value>: `{"a": {…}, "b": {…}}`.
    mutating func readFields(into fields: inout MapBuilder) throws(Status) {
        guard reader.peek() == UInt8(ascii: "{") else { throw try invalidValue("TYPE_MESSAGE") }
        try reader.openContainer(UInt8(ascii: "{"))
        var isFirst = true
        var index = 0
        while let key = try reader.nextMember(&isFirst) {
            let name = try reader.string(key)
            do throws(Status) {
                fields.append(name, try readValue())
            } catch {
                note("value")
                note(index: index)
                throw error
            }
            index += 1
        }
    }

    /// The collected map; a duplicate key is an error.
    mutating func takeUnique(_ fields: inout MapBuilder) throws(Status) -> MapValue {
        let count = fields.count
        let map = fields.take()
        if map.count != count {
            let name = fields.firstDuplicate ?? ""
            throw fail(.name(name, "Repeated map key: '\(name)' is already set."))
        }
        return map
    }

    /// Reads an object member by member; the body reads the value of the current key.
    mutating func readObject(
        _ typeName: String, _ body: (inout JSONFieldDecoder) throws(Status) -> Void
    ) throws(Status) {
        guard reader.peek() == UInt8(ascii: "{") else { throw try invalidValue("type.googleapis.com/\(typeName)") }
        try reader.openContainer(UInt8(ascii: "{"))
        var isFirst = true
        while let key = try reader.nextMember(&isFirst) {
            try setKey(key)
            try body(&self)
        }
    }
}

/// Strings of the well-known types.
extension JSONFieldDecoder {
    mutating func readDuration() throws(Status) -> DurationMessage {
        guard reader.peek() == UInt8(ascii: "\"") else {
            throw try invalidValue("type.googleapis.com/google.protobuf.Duration")
        }
        let start = reader.position
        guard let duration = DurationMessage(parsing: try reader.readString()) else {
            throw fail(
                .value(
                    "type.googleapis.com/google.protobuf.Duration",
                    "Illegal duration format: \(string(start..<reader.position))"))
        }
        return duration
    }
}
