import HearthJSON
import HearthModel
import HearthWire

/// JSON as values: whole numbers become integers, as in the claims of a token that rules see.
package enum PlainJSON {
    private static let depthMax = 32

    /// - Parameter refusesDuplicates: whether an object with two members of one name is an error; else the last counts.
    /// - Throws: INVALID_ARGUMENT when the bytes are not a JSON object.
    package static func object(_ bytes: [UInt8], refusesDuplicates: Bool = false) throws(Status) -> MapValue {
        guard case .map(let map) = try any(bytes, refusesDuplicates: refusesDuplicates) else {
            throw .invalidArgument("Expected a JSON object.")
        }
        return map
    }

    /// - Throws: INVALID_ARGUMENT when the bytes are not JSON.
    package static func any(_ bytes: [UInt8], refusesDuplicates: Bool = false) throws(Status) -> Value {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(Status) in
                var reader = try JSONReader(bytes)
                let value = try value(&reader, depth: 0, refusesDuplicates)
                try reader.endDocument()
                return value
            }
        }
        return try result.get()
    }

    private static func value(
        _ reader: inout JSONReader, depth: Int, _ refusesDuplicates: Bool
    ) throws(Status) -> Value {
        if depth > depthMax { throw .invalidArgument("The JSON is nested too deeply.") }
        switch reader.peek() {
        case UInt8(ascii: "{"):
            var fields: [MapValue.Field] = []
            var isFirst = true
            try reader.openContainer(UInt8(ascii: "{"))
            while let name = try reader.nextMember(&isFirst) {
                let name = try reader.string(name)
                fields.append(.init(name: name, value: try value(&reader, depth: depth + 1, refusesDuplicates)))
            }
            let map = MapValue(fields)
            if refusesDuplicates, map.count < fields.count {
                throw .invalidArgument("The JSON has two members of one name.")
            }
            return .map(map)
        case UInt8(ascii: "["):
            var elements: [Value] = []
            var isFirst = true
            try reader.openContainer(UInt8(ascii: "["))
            while try reader.nextElement(&isFirst) {
                elements.append(try value(&reader, depth: depth + 1, refusesDuplicates))
            }
            return .array(elements)
        case UInt8(ascii: "\""): return .string(try reader.readString())
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .boolean(try reader.takeBool() ?? false)
        case UInt8(ascii: "n"):
            _ = try reader.takeNull()
            return .null
        default:
            let number = try reader.readNumber()
            if let integer = number.plainInt64 { return .integer(integer) }
            return .double(number.double)
        }
    }
}

extension PlainJSON {
    /// Writes a value of a token: strings, numbers, Booleans, null, lists and maps.
    static func string(_ value: Value) -> [UInt8] {
        var writer = JSONWriter()
        write(value, to: &writer)
        return writer.bytes
    }

    private static func write(_ value: Value, to writer: inout JSONWriter) {
        switch value {
        case .boolean(let flag): writer.raw(flag ? "true" : "false")
        case .integer(let number): writer.integer(number)
        case .double(let number) where number.isFinite: writer.double(number)
        case .string(let string): writer.string(string)
        case .array(let elements):
            writer.raw("[")
            for (index, element) in elements.enumerated() {
                if index > 0 { writer.raw(",") }
                write(element, to: &writer)
            }
            writer.raw("]")
        case .map(let map):
            writer.raw("{")
            for (index, field) in map.fields.enumerated() {
                if index > 0 { writer.raw(",") }
                writer.string(field.name)
                writer.raw(":")
                write(field.value, to: &writer)
            }
            writer.raw("}")
        case .null, .double, .timestamp, .bytes, .reference, .geoPoint, .vector: writer.raw("null")
        }
    }
}
