import HearthJSON
import HearthModel

/// Scalars of proto3 JSON.
extension JSONFieldDecoder {
    mutating func readString() throws(Status) -> String {
        guard reader.peek() == UInt8(ascii: "\"") else { throw try invalidValue("TYPE_STRING") }
        return try reader.readString()
    }

    mutating func readBytes() throws(Status) -> [UInt8] {
        guard reader.peek() == UInt8(ascii: "\"") else { throw try invalidValue("TYPE_BYTES") }
        let start = reader.position
        let token = try reader.readStringToken()
        let content: [UInt8]?
        if token.hasEscapes {
            let unescaped = try reader.unescaped(token)
            content = unescaped.withUnsafeBytes { Base64.decode($0) }
        } else {
            content = Base64.decode(reader.content(token))
        }
        guard let content else {
            throw fail(.value("TYPE_BYTES", "Base64 decoding failed for \(string(start..<reader.position))"))
        }
        return content
    }

    mutating func readBool() throws(Status) -> Bool {
        if let value = try reader.takeBool() { return value }
        if isLenient, reader.peek() == UInt8(ascii: "\"") {
            let start = reader.position
            switch try reader.readString() {
            case "true": return true
            case "false": return false
            default: reader.rewind(to: start)
            }
        }
        throw try invalidValue("TYPE_BOOL")
    }

    mutating func readInt64() throws(Status) -> Int64 {
        try readNumber("TYPE_INT64") { $0.int64 }
    }

    mutating func readInt32() throws(Status) -> Int32 {
        try readNumber("TYPE_INT32") { $0.int64.flatMap { Int32(exactly: $0) } }
    }

    mutating func readUInt64() throws(Status) -> UInt64 {
        try readNumber("TYPE_UINT64") { $0.uint64 }
    }

    mutating func readUInt32() throws(Status) -> UInt32 {
        try readNumber("TYPE_UINT32") { $0.uint64.flatMap { UInt32(exactly: $0) } }
    }

    mutating func readDouble() throws(Status) -> Double {
        if reader.peek() == UInt8(ascii: "\""), let special = try takeSpecialDouble() { return special }
        return try readNumber("TYPE_DOUBLE") { $0.finiteDouble }
    }

    private mutating func takeSpecialDouble() throws(Status) -> Double? {
        let start = reader.position
        switch try reader.readString() {
        case "NaN": return .nan
        case "Infinity": return .infinity
        case "-Infinity": return -.infinity
        default:
            reader.rewind(to: start)
            return nil
        }
    }

    /// Reads a number, in quotes or not.
    private mutating func readNumber<T>(
        _ type: String, _ parse: (JSONNumber) -> T?
    ) throws(Status) -> T {
        let byte = reader.peek()
        let start = reader.position
        if byte == UInt8(ascii: "\"") {
            let token = try reader.readStringToken()
            if let number = JSONNumber(reader.content(token)).flatMap(parse) { return number }
        } else if byte == UInt8(ascii: "-") || (byte.map { $0 &- UInt8(ascii: "0") < 10 } ?? false) {
            if let number = parse(try reader.readNumber()) { return number }
        }
        reader.rewind(to: start)
        throw try invalidValue(type)
    }

    /// Reads an enumeration's name or number.
    mutating func readEnum<E: WireEnum>() throws(Status) -> E {
        let byte = reader.peek()
        if byte == UInt8(ascii: "\"") {
            let start = reader.position
            let name = try reader.readString()
            if let known = E.names.first(where: { UTF8Order.equal($0.name.description, name) }) {
                return E(rawValue: known.number)
            }
            reader.rewind(to: start)
            // A number in quotes is a number, as for numeric fields.
            if Int32(name) == nil { throw try invalidValue("type.googleapis.com/\(E.typeName)") }
        }
        guard byte != UInt8(ascii: "{"), byte != UInt8(ascii: "["), byte != UInt8(ascii: "t"), byte != UInt8(ascii: "f")
        else { throw try invalidValue("type.googleapis.com/\(E.typeName)") }
        return E(rawValue: try readInt32())
    }
}

/// Strings of google.protobuf.FieldMask: paths joined by commas, in camel case.
enum FieldMaskString {
    static func paths(_ string: String) -> [String] {
        if string.isEmpty { return [] }
        return string.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .map { snakeCase(Substring($0)) }
    }

    private static func snakeCase(_ path: Substring) -> String {
        var result = ""
        for scalar in path.unicodeScalars {
            if ("A"..."Z").contains(scalar), let lower = Unicode.Scalar(scalar.value + 0x20) {
                result.unicodeScalars.append("_")
                result.unicodeScalars.append(lower)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    static func string(_ paths: [String]) -> String {
        paths.map(camelCase).joined(separator: ",")
    }

    private static func camelCase(_ path: String) -> String {
        var result = ""
        var isCapital = false
        for scalar in path.unicodeScalars {
            if scalar == "_" {
                isCapital = true
            } else if isCapital, ("a"..."z").contains(scalar), let upper = Unicode.Scalar(scalar.value - 0x20) {
                result.unicodeScalars.append(upper)
                isCapital = false
            } else {
                result.unicodeScalars.append(scalar)
                isCapital = false
            }
        }
        return result
    }
}
