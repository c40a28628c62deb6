internal import Foundation
internal import HearthModel

/// A single condition or a combination of conditions, for `Query.whereFilter`.
public final class Filter: Sendable {
    /// The unchecked condition. A query, which knows the database, checks it.
    indirect enum Expression: Sendable {
        case field(ModelFieldPath, ModelFilter.Operator, Carried<Any>)
        case and([Expression])
        case or([Expression])
    }

    let expression: Expression

    private init(_ expression: Expression) { self.expression = expression }

    private convenience init(_ field: String, _ op: ModelFilter.Operator, _ value: Any) {
        let path = orTrap { () throws(Status) in try FieldPath.parse(field) }
        self.init(.field(path, op, Carried(value)))
    }

    private convenience init(_ path: FieldPath, _ op: ModelFilter.Operator, _ value: Any) {
        self.init(.field(path.model, op, Carried(value)))
    }

    /// Documents that match at least one of the filters.
    /// - Parameter filters: the members. An empty list has no effect on a query.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func orFilter(_ filters: [Filter]) -> Filter { Filter(.or(filters.map(\.expression))) }

    /// Documents that match all of the filters.
    /// - Parameter filters: the members. An empty list has no effect on a query.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func andFilter(_ filters: [Filter]) -> Filter { Filter(.and(filters.map(\.expression))) }

    /// Documents whose field equals the value.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, isEqualTo value: Any) -> Filter { Filter(field, .equal, value) }
    /// Documents whose field equals the value.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, isEqualTo value: Any) -> Filter { Filter(path, .equal, value) }

    /// Documents that have the field with another value that is not null.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, isNotEqualTo value: Any) -> Filter { Filter(field, .notEqual, value) }
    /// Documents that have the field with another value that is not null.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, isNotEqualTo value: Any) -> Filter {
        Filter(path, .notEqual, value)
    }

    /// Documents whose field is less than the value and has the same type.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, isLessThan value: Any) -> Filter { Filter(field, .lessThan, value) }
    /// Documents whose field is less than the value and has the same type.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, isLessThan value: Any) -> Filter { Filter(path, .lessThan, value) }

    /// Documents whose field is at most the value and has the same type.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, isLessThanOrEqualTo value: Any) -> Filter {
        Filter(field, .lessThanOrEqual, value)
    }
    /// Documents whose field is at most the value and has the same type.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, isLessThanOrEqualTo value: Any) -> Filter {
        Filter(path, .lessThanOrEqual, value)
    }

    /// Documents whose field is greater than the value and has the same type.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, isGreaterThan value: Any) -> Filter {
        Filter(field, .greaterThan, value)
    }
    /// Documents whose field is greater than the value and has the same type.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, isGreaterThan value: Any) -> Filter {
        Filter(path, .greaterThan, value)
    }

    /// Documents whose field is at least the value and has the same type.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, isGreaterOrEqualTo value: Any) -> Filter {
        Filter(field, .greaterThanOrEqual, value)
    }
    /// Documents whose field is at least the value and has the same type.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, isGreaterOrEqualTo value: Any) -> Filter {
        Filter(path, .greaterThanOrEqual, value)
    }

    /// Documents whose field is an array that contains the value.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, arrayContains value: Any) -> Filter {
        Filter(field, .arrayContains, value)
    }
    /// Documents whose field is an array that contains the value.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, arrayContains value: Any) -> Filter {
        Filter(path, .arrayContains, value)
    }

    /// Documents whose field is an array that contains at least one of the values.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - values: 1 to 30 values. An empty list ends the program; the server responds to more than 30 with
    ///     `invalidArgument`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, arrayContainsAny values: [Any]) -> Filter {
        Filter(field, .arrayContainsAny, values)
    }
    /// Documents whose field is an array that contains at least one of the values.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - values: 1 to 30 values. An empty list ends the program; the server responds to more than 30 with
    ///     `invalidArgument`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, arrayContainsAny values: [Any]) -> Filter {
        Filter(path, .arrayContainsAny, values)
    }

    /// Documents whose field equals one of the values.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - values: 1 to 30 values. An empty list ends the program; the server responds to more than 30 with
    ///     `invalidArgument`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, in values: [Any]) -> Filter { Filter(field, .in, values) }
    /// Documents whose field equals one of the values.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - values: 1 to 30 values. An empty list ends the program; the server responds to more than 30 with
    ///     `invalidArgument`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, in values: [Any]) -> Filter { Filter(path, .in, values) }

    /// Documents that have the field with a value that is not null and equals none of the values.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - values: 1 to 10 values. An empty list ends the program; the server responds to more than 10 with
    ///     `invalidArgument`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ field: String, notIn values: [Any]) -> Filter { Filter(field, .notIn, values) }
    /// Documents that have the field with a value that is not null and equals none of the values.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - values: 1 to 10 values. An empty list ends the program; the server responds to more than 10 with
    ///     `invalidArgument`.
    /// - Returns: the filter, for `Query.whereFilter(_:)`.
    @discardableResult
    public class func whereField(_ path: FieldPath, notIn values: [Any]) -> Filter { Filter(path, .notIn, values) }
}
