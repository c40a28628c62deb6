internal import Foundation
internal import HearthModel

/// One traversal of a value of the user. It collects transforms and the mask.
struct UserDataWalk {
    let reader: UserDataReader
    let source: UserDataReader.Source
    var parsed = UserDataReader.Parsed()

    init(reader: UserDataReader, source: UserDataReader.Source) {
        self.reader = reader
        self.source = source
    }

    /// nil when the value consisted only of sentinels, which are in `parsed` now.
    mutating func value(_ value: Any, at path: [String], inArray: Bool = false) throws(Status) -> Value? {
        if path.count > Limits.messageDepthMax { throw invalid("It nests deeper than any server takes.", path) }
        if let optional = value as? any OptionalValue {
            guard let wrapped = optional.wrappedValue else { return leaf(.null, path, inArray) }
            return try self.value(wrapped, at: path, inArray: inArray)
        }
        if let sentinel = value as? FieldValue {
            try take(sentinel, at: path, inArray: inArray)
            return nil
        }
        if let scalar = try scalar(value, at: path) { return leaf(scalar, path, inArray) }
        if let map = value as? [String: Any] {
            return try self.map(map, at: path, inArray: inArray).map(Value.map)
        }
        if let array = value as? [Any] {
            if inArray { throw invalid("Nested arrays are not supported.", path) }
            var elements: [Value] = []
            elements.reserveCapacity(array.count)
            for element in array {
                // An array element adds to the depth although a path does not contain arrays.
                elements.append(try self.value(element, at: path + [""], inArray: true) ?? .null)
            }
            return leaf(.array(elements), path, inArray)
        }
        throw invalid("Unsupported type: \(Swift.type(of: value)).", path)
    }

    /// nil when the map is not empty, but contains only sentinels.
    mutating func map(_ map: [String: Any], at path: [String], inArray: Bool = false) throws(Status) -> MapValue? {
        var fields: [MapValue.Field] = []
        fields.reserveCapacity(map.count)
        // Sorted, so that equal data produces equal requests: transforms are in the order of the traversal.
        for (name, member) in map.sorted(by: { UTF8Order.compare($0.key, $1.key) < 0 }) {
            try Self.validate(name: name, at: path + [name])
            if let value = try value(member, at: path + [name], inArray: false, belowArray: inArray) {
                fields.append(MapValue.Field(name: name, value: value))
            }
        }
        if map.isEmpty {
            if !path.isEmpty { _ = leaf(.null, path, inArray) }
            return MapValue()
        }
        return fields.isEmpty ? nil : MapValue(sorted: fields)
    }

    /// A map's member. In a map inside an array, sentinels are not allowed, and arrays are allowed again.
    private mutating func value(
        _ value: Any, at path: [String], inArray: Bool, belowArray: Bool
    ) throws(Status) -> Value? {
        guard belowArray || isBelowArray else { return try self.value(value, at: path, inArray: inArray) }
        let outer = isBelowArray
        isBelowArray = true
        defer { isBelowArray = outer }
        return try self.value(value, at: path, inArray: inArray)
    }

    /// True while the traversal is in a map inside an array.
    private var isBelowArray = false

    /// Adds a leaf path to the mask of a merge.
    private mutating func leaf(_ value: Value, _ path: [String], _ inArray: Bool) -> Value {
        if case .mergeSet = source, !inArray, !isBelowArray { parsed.mask.append(ModelFieldPath(segments: path)) }
        return value
    }

    // MARK: Scalars

    /// nil for arrays, maps and unknown types.
    private func scalar(_ value: Any, at path: [String]) throws(Status) -> Value? {
        switch value {
        case is NSNull: return .null
        case let string as String: return .string(string)
        case let number as NSNumber: return try self.number(number, at: path)
        case let number as CGFloat: return .double(Double(number))
        case let number as Decimal: return .double(NSDecimalNumber(decimal: number).doubleValue)
        case let time as Timestamp: return .timestamp(time.model)
        case let date as Date:
            do {
                return .timestamp(try Timestamp.model(of: date))
            } catch {
                throw invalid(error.message, path)
            }
        case let point as GeoPoint:
            return .geoPoint(ModelGeoPoint(latitude: point.latitude, longitude: point.longitude))
        case let data as Data: return .bytes([UInt8](data))
        case let vector as VectorValue: return .vector(vector.array)
        case let reference as DocumentReference:
            let other = reference.firestore.databaseName
            guard other == reader.database else {
                throw invalid(
                    "Document reference is for database \(other.project)/\(other.database) but should be for database "
                        + "\(reader.database.project)/\(reader.database.database).", path)
            }
            return .reference(ResourceName(database: other, path: reference.key).string)
        default: return nil
        }
    }

    private func number(_ number: NSNumber, at path: [String]) throws(Status) -> Value {
        if number.holdsBoolean { return .boolean(number.boolValue) }
        if number.holdsFloatingPoint { return .double(number.doubleValue) }
        if number.holdsUnsigned64, number.uint64Value > UInt64(Int64.max) {
            throw invalid("The unsigned integer \(number.uint64Value) is too large for a signed 64-bit integer.", path)
        }
        return .integer(number.int64Value)
    }

    // MARK: Sentinels

    private mutating func take(_ sentinel: FieldValue, at path: [String], inArray: Bool) throws(Status) {
        if case .argument(let owner) = source {
            throw .invalidArgument("Invalid data. \(sentinel.methodName) cannot be used with \(owner).")
        }
        if inArray || isBelowArray {
            throw invalid("\(sentinel.methodName) is not currently supported inside arrays.", path)
        }
        let field = ModelFieldPath(segments: path)
        let operation: FieldTransform.Operation
        switch sentinel.kind {
        case .delete:
            switch source {
            case .mergeSet: return parsed.mask.append(field)
            // A delete that is the value of a top-level key does not reach this function.
            case .update:
                throw invalid("FieldValue.delete() can only appear at the top level of your update data.", path)
            default:
                throw invalid(
                    "FieldValue.delete() can only be used with updateData() and setData() with merge:true.", path)
            }
        case .serverTimestamp: operation = .requestTime
        case .increment(let operand): operation = .increment(operand)
        case .minimum(let operand): operation = .minimum(operand)
        case .maximum(let operand): operation = .maximum(operand)
        case .arrayUnion(let elements):
            operation = .appendMissingElements(try reader.elements(elements.value, of: sentinel.methodName))
        case .arrayRemove(let elements):
            operation = .removeAllFromArray(try reader.elements(elements.value, of: sentinel.methodName))
        }
        parsed.transforms.append(FieldTransform(path: field, operation: operation))
    }

    // MARK: Messages

    static func validate(name: String, at path: [String]) throws(Status) {
        if name.isEmpty { throw .invalidArgument("Invalid data. Document fields must not be empty\(location(path)).") }
        if name.utf8.count >= 4, name.hasPrefix("__"), name.hasSuffix("__") {
            throw .invalidArgument("Invalid data. Document fields cannot begin and end with \"__\"\(location(path)).")
        }
    }

    private func invalid(_ reason: String, _ path: [String]) -> Status {
        .invalidArgument(
            "Invalid data. \(reason.hasSuffix(".") ? String(reason.dropLast()) : reason)\(Self.location(path)).")
    }

    private static func location(_ path: [String]) -> String {
        let names = path.filter { !$0.isEmpty }
        return names.isEmpty ? "" : " (found in field \(ModelFieldPath(segments: names).string))"
    }
}
