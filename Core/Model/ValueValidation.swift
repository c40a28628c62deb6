/// The rules for a document's fields before they are stored. Source: "Constraints on field names" and "Limits" of the
/// Firestore documentation; the messages are the service's.
@usableFromInline package enum ValueValidation {
    /// Checks the fields of a document that is about to be written.
    package static func validate(_ fields: MapValue) throws(Status) {
        for field in fields.fields {
            try validateName(field.name)
            try validate(field.value, of: field.name)
        }
    }

    /// Checks one value that is about to be stored in `field`: written, or an operand of a transform.
    package static func validate(_ value: Value, of field: String) throws(Status) {
        try validate(value, of: field, depth: 0, keyBytes: field.utf8.count, inArray: false)
    }

    /// Checks that a value does not nest too deep at the path of a transform: the maps on the path count as well.
    package static func validateDepth(of value: Value, at path: FieldPath) throws(Status) {
        try validateDepth(path.segments.count - 1, of: path.segments[0])
        try validateDepth(of: value, depth: path.segments.count - 1, path.segments[0])
    }

    private static func validateDepth(of value: Value, depth: Int, _ field: String) throws(Status) {
        switch value {
        case .array(let elements):
            try validateDepth(depth + 1, of: field)
            for element in elements { try validateDepth(of: element, depth: depth + 1, field) }
        case .map(let map):
            try validateDepth(depth + 1, of: field)
            for member in map.fields { try validateDepth(of: member.value, depth: depth + 1, field) }
        default: break
        }
    }

    /// Checks an operand of a query: its points, references and vectors, and that it names no reserved field.
    package static func validateOperand(_ value: Value) throws(Status) {
        switch value {
        case .geoPoint(let point): try validate(point)
        case .reference(let name): _ = try ResourceName(reference: name)
        case .vector(let elements): try validateVector(elements)
        case .array(let elements):
            for element in elements { try validateOperand(element) }
        case .map(let map):
            try validateType(map)
            for member in map.fields {
                if FieldPath.isReserved(member.name), member.name != "__type__" {
                    throw .invalidArgument("field name '\(member.name)' is reserved.")
                }
                try validateOperand(member.value)
            }
        case .null, .boolean, .integer, .double, .timestamp, .string, .bytes: break
        }
    }

    private static func validateName(_ name: String) throws(Status) {
        if name.isEmpty { throw .invalidArgument("The property.name is the empty string.") }
        if name.utf8.count > Limits.fieldPathSizeBytesMax {
            throw .invalidArgument("The property.name is longer than \(Limits.fieldPathSizeBytesMax) bytes.")
        }
        if FieldPath.isReserved(name) { throw .invalidArgument("field name \(name) is reserved") }
    }

    /// - Parameter keyBytes: the total length of the field's name and of the keys on the path to the value.
    private static func validate(
        _ value: Value, of field: String, depth: Int, keyBytes: Int, inArray: Bool
    ) throws(Status) {
        switch value {
        case .geoPoint(let point):
            try validate(point)
        case .reference(let name):
            _ = try ResourceName(reference: name)
        case .vector(let elements):
            if inArray { throw .invalidArgument("Cannot convert a vector value in an array value.") }
            try validateVector(elements)
            if elements.contains(where: \.isNaN) {
                if keyBytes > field.utf8.count { throw invalidNested(field) }
                throw .invalidArgument("Vector cannot contain NaN values.")
            }
        case .array(let elements):
            if inArray { throw .invalidArgument("Cannot convert an array value in an array value.") }
            try validateDepth(depth + 1, of: field)
            for element in elements {
                try validate(element, of: field, depth: depth + 1, keyBytes: keyBytes, inArray: true)
            }
        case .map(let map):
            try validateDepth(depth + 1, of: field)
            try validateMap(map, of: field, depth: depth, keyBytes: keyBytes)
        case .string(let string):
            try validateSize(string.utf8.count, of: field, inMap: keyBytes > field.utf8.count)
        case .bytes(let bytes):
            try validateSize(bytes.count, of: field, inMap: keyBytes > field.utf8.count)
        case .null, .boolean, .integer, .double, .timestamp:
            break
        }
    }

    private static func validateSize(_ bytes: Int, of field: String, inMap: Bool) throws(Status) {
        if bytes <= Limits.fieldValueSizeBytesMax { return }
        if inMap { throw invalidNested(field) }
        throw .invalidArgument(
            "The value of property \"\(field)\" is longer than \(Limits.fieldValueSizeBytesMax) bytes.")
    }

    private static func validateMap(
        _ map: MapValue, of field: String, depth: Int, keyBytes: Int
    ) throws(Status) {
        try validateType(map)
        for member in map.fields {
            if member.name.isEmpty { throw .invalidArgument("The property.name is the empty string.") }
            let keyBytes = keyBytes + member.name.utf8.count
            if keyBytes > Limits.fieldPathSizeBytesMax || member.name == "__type__" { throw invalidNested(field) }
            if FieldPath.isReserved(member.name) {
                throw .invalidArgument("field name '\(member.name)' is reserved.")
            }
            try validate(member.value, of: field, depth: depth + 1, keyBytes: keyBytes, inArray: false)
        }
    }

    /// Checks `__type__` of a map that represents a value of another type. The decoder has recognised well-formed
    /// vectors: a map that still has the mark is malformed.
    private static func validateType(_ map: MapValue) throws(Status) {
        switch map["__type__"] {
        case nil: break
        case .string("__vector__")?: throw malformedVector(map)
        case .string?: break
        default: throw .invalidArgument("Field __type__ is not a string.")
        }
    }

    private static func validateDepth(_ depth: Int, of field: String) throws(Status) {
        if depth > Limits.valueDepthMax { throw invalidNested(field) }
    }

    private static func invalidNested(_ field: String) -> Status {
        .invalidArgument("Property \(field) contains an invalid nested entity.")
    }

    private static func malformedVector(_ map: MapValue) -> Status {
        guard let value = map["value"] else { return .invalidArgument("Vector map is missing key 'value'.") }
        if map.count > 2 { return .invalidArgument("Vector Value map has extraneous entries.") }
        guard case .array(let elements) = value else {
            return .invalidArgument("Vector map key 'value' must be an array.")
        }
        if elements.isEmpty { return .invalidArgument("Cannot have a zero length vector.") }
        return .invalidArgument("Vector must only contain values of type 'double'")
    }

    @inlinable package static func validateVector(_ elements: [Double]) throws(Status) {
        if elements.isEmpty { throw .invalidArgument("Cannot have a zero length vector.") }
        if elements.count > Limits.vectorDimensionMax {
            throw .invalidArgument("Vectors must be at most \(Limits.vectorDimensionMax) dimensions.")
        }
    }

    package static func validate(_ point: GeoPoint) throws(Status) {
        if !(point.latitude >= -90 && point.latitude <= 90) {
            throw .invalidArgument("Geo point latitude '\(point.latitude)' outside permitted range -90.0 to 90.0.")
        }
        if !(point.longitude >= -180 && point.longitude <= 180) {
            throw .invalidArgument("Geo point longitude '\(point.longitude)' outside permitted range -180.0 to 180.0.")
        }
    }
}
