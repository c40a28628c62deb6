import Foundation
import HearthModel

@testable import HearthSync

/// Queries and values in the notation of the sync spec tests.
enum SpecQuery {
    static func parse(_ json: Any) throws -> ClientQuery {
        if let path = json as? String { return ClientQuery(path: ResourcePath(string: path)) }
        guard let object = json as? [String: Any], let path = object["path"] as? String else {
            throw Status.invalidArgument("No query: \(json)")
        }
        var query = ClientQuery(path: ResourcePath(string: path), collectionGroup: object["collectionGroup"] as? String)
        for filter in object["filters"] as? [[Any]] ?? [] {
            guard filter.count == 3, let field = filter[0] as? String, let name = filter[1] as? String,
                let op = operators[name]
            else { throw Status.invalidArgument("No filter: \(filter)") }
            query.filters.append(.field(fieldPath(field), op, try value(filter[2])))
        }
        for order in object["orderBys"] as? [[String]] ?? [] {
            query.orders.append(Query.Order(field: fieldPath(order[0]), descending: order[1] == "desc"))
        }
        if let limit = object["limit"] as? Int {
            query.limit = limit
            guard let type = object["limitType"] as? String, ["LimitToFirst", "LimitToLast"].contains(type) else {
                throw Status.invalidArgument("A limit without a type: \(object)")
            }
            query.limitType = type == "LimitToLast" ? .last : .first
        }
        query.start = try bound(object["startAt"])
        query.end = try bound(object["endAt"])
        return query
    }

    private static func bound(_ json: Any?) throws -> ClientQuery.Bound? {
        guard let object = json as? [String: Any] else { return nil }
        guard let values = object["values"] as? [Any], let isInclusive = object["inclusive"] as? Bool else {
            throw Status.invalidArgument("No bound: \(object)")
        }
        return ClientQuery.Bound(values: try values.map(value), isInclusive: isInclusive)
    }

    static func fieldPath(_ string: String) -> FieldPath {
        FieldPath(segments: string.split(separator: ".", omittingEmptySubsequences: false).map(String.init))
    }

    private static let operators: [String: Filter.Operator] = [
        "<": .lessThan, "<=": .lessThanOrEqual, "==": .equal, "!=": .notEqual, ">=": .greaterThanOrEqual,
        ">": .greaterThan, "array-contains": .arrayContains, "array-contains-any": .arrayContainsAny, "in": .in,
        "not-in": .notIn,
    ]

    static func value(_ json: Any) throws -> Value {
        switch json {
        case is NSNull: return .null
        case let string as String: return .string(string)
        case let list as [Any]: return .array(try list.map(value))
        case let object as [String: Any]: return .map(try map(object))
        case let number as NSNumber:
            if CFGetTypeIDIsBoolean(number) { return .boolean(number.boolValue) }
            let double = number.doubleValue
            return double == double.rounded() && abs(double) < 0x1p62 ? .integer(number.int64Value) : .double(double)
        default: throw Status.invalidArgument("No value: \(json)")
        }
    }

    static func map(_ object: [String: Any]) throws -> MapValue {
        MapValue(try object.map { MapValue.Field(name: $0.key, value: try value($0.value)) })
    }

    /// JSON's `true` is an `NSNumber`, too; its type identifies it.
    private static func CFGetTypeIDIsBoolean(_ number: NSNumber) -> Bool {
        String(cString: number.objCType) == "c"
    }
}
