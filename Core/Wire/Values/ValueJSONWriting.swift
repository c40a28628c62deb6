import HearthModel

/// google.firestore.v1.Value and the maps that hold it, from the model to proto3 JSON.
extension JSONWriter {
    package mutating func value(_ value: Value) {
        switch value {
        case .null: raw("{\"nullValue\":null}")
        case .boolean(let flag): raw(flag ? "{\"booleanValue\":true}" : "{\"booleanValue\":false}")
        case .integer(let number):
            raw("{\"integerValue\":")
            quotedInteger(number)
            byte(UInt8(ascii: "}"))
        case .double(let number):
            raw("{\"doubleValue\":")
            double(number)
            byte(UInt8(ascii: "}"))
        case .timestamp(let time):
            raw("{\"timestampValue\":")
            timestamp(time)
            byte(UInt8(ascii: "}"))
        case .string(let string):
            raw("{\"stringValue\":")
            self.string(string)
            byte(UInt8(ascii: "}"))
        case .bytes(let content):
            raw("{\"bytesValue\":")
            content.withUnsafeBytes { base64($0) }
            byte(UInt8(ascii: "}"))
        case .reference(let name):
            raw("{\"referenceValue\":")
            string(name)
            byte(UInt8(ascii: "}"))
        case .geoPoint(let point):
            raw("{\"geoPointValue\":")
            geoPoint(point.latitude, point.longitude)
            byte(UInt8(ascii: "}"))
        case .array(let elements):
            raw("{\"arrayValue\":")
            arrayValue(elements)
            byte(UInt8(ascii: "}"))
        case .vector(let elements):
            vector(elements)
        case .map(let map):
            raw("{\"mapValue\":{")
            if !map.isEmpty {
                raw("\"fields\":")
                fields(map)
            }
            raw("}}")
        }
    }

    /// An ArrayValue: `{"values":[…]}`, or `{}`.
    mutating func arrayValue(_ elements: [Value]) {
        byte(UInt8(ascii: "{"))
        if !elements.isEmpty {
            raw("\"values\":[")
            for (index, element) in elements.enumerated() {
                if index > 0 { byte(UInt8(ascii: ",")) }
                value(element)
            }
            byte(UInt8(ascii: "]"))
        }
        byte(UInt8(ascii: "}"))
    }

    /// The entries of a map as an object.
    package mutating func fields(_ map: MapValue) {
        byte(UInt8(ascii: "{"))
        for (index, field) in map.fields.enumerated() {
            if index > 0 { byte(UInt8(ascii: ",")) }
            string(field.name)
            byte(UInt8(ascii: ":"))
            value(field.value)
        }
        byte(UInt8(ascii: "}"))
    }

    /// The map that represents a vector; without elements its ArrayValue is `{}`, as usual.
    private mutating func vector(_ elements: [Double]) {
        raw("{\"mapValue\":{\"fields\":{\"__type__\":{\"stringValue\":\"__vector__\"},\"value\":{\"arrayValue\":")
        arrayValue(elements.map { .double($0) })
        raw("}}}}")
    }

    /// A google.type.LatLng; a zero is omitted, a negative zero is not.
    mutating func geoPoint(_ latitude: Double, _ longitude: Double) {
        byte(UInt8(ascii: "{"))
        if latitude.bitPattern != 0 {
            raw("\"latitude\":")
            double(latitude)
        }
        if longitude.bitPattern != 0 {
            if latitude.bitPattern != 0 { byte(UInt8(ascii: ",")) }
            raw("\"longitude\":")
            double(longitude)
        }
        byte(UInt8(ascii: "}"))
    }

    mutating func timestamp(_ time: Timestamp) {
        timestamp(seconds: time.seconds, nanoseconds: Int32(truncatingIfNeeded: time.nanoseconds))
    }
}
