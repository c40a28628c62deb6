internal import Foundation
internal import HearthModel
internal import HearthSync

extension Query {
    /// Adds a filter. All filters of a query must match.
    /// - Parameter filter: one condition, or a combination of conditions. A query has at most 30 disjunctions.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereFilter(_ filter: Filter) -> Query {
        orTrap { () throws(Status) in try filtered(filter.expression) }
    }

    func filtered(_ expression: Filter.Expression) throws(Status) -> Query {
        guard let filter = try FilterBuilder(self).filter(expression) else { return self }
        try FilterBuilder.validate(filter, besides: model.filters)
        return with { $0.filters.append(filter) }
    }

    private func filtered(_ field: String, _ op: ModelFilter.Operator, _ value: Any) -> Query {
        orTrap { () throws(Status) in try filtered(.field(try FieldPath.parse(field), op, Carried(value))) }
    }

    private func filtered(_ path: FieldPath, _ op: ModelFilter.Operator, _ value: Any) -> Query {
        orTrap { () throws(Status) in try filtered(.field(path.model, op, Carried(value))) }
    }

    /// Documents whose field equals the value.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, isEqualTo value: Any) -> Query { filtered(field, .equal, value) }
    /// Documents whose field equals the value.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, isEqualTo value: Any) -> Query { filtered(path, .equal, value) }

    /// Documents that have the field with another value that is not null.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, isNotEqualTo value: Any) -> Query { filtered(field, .notEqual, value) }
    /// Documents that have the field with another value that is not null.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, isNotEqualTo value: Any) -> Query { filtered(path, .notEqual, value) }

    /// Documents whose field is less than the value and has the same type.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, isLessThan value: Any) -> Query { filtered(field, .lessThan, value) }
    /// Documents whose field is less than the value and has the same type.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, isLessThan value: Any) -> Query { filtered(path, .lessThan, value) }

    /// Documents whose field is at most the value and has the same type.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, isLessThanOrEqualTo value: Any) -> Query {
        filtered(field, .lessThanOrEqual, value)
    }
    /// Documents whose field is at most the value and has the same type.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, isLessThanOrEqualTo value: Any) -> Query {
        filtered(path, .lessThanOrEqual, value)
    }

    /// Documents whose field is greater than the value and has the same type.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, isGreaterThan value: Any) -> Query { filtered(field, .greaterThan, value) }
    /// Documents whose field is greater than the value and has the same type.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, isGreaterThan value: Any) -> Query { filtered(path, .greaterThan, value) }

    /// Documents whose field is at least the value and has the same type.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, isGreaterThanOrEqualTo value: Any) -> Query {
        filtered(field, .greaterThanOrEqual, value)
    }
    /// Documents whose field is at least the value and has the same type.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, isGreaterThanOrEqualTo value: Any) -> Query {
        filtered(path, .greaterThanOrEqual, value)
    }

    /// Documents whose field is an array that contains the value.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, arrayContains value: Any) -> Query {
        filtered(field, .arrayContains, value)
    }
    /// Documents whose field is an array that contains the value.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - value: what the field is compared with: any value of a field, but no `FieldValue`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, arrayContains value: Any) -> Query {
        filtered(path, .arrayContains, value)
    }

    /// Documents whose field is an array that contains at least one of the values.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - values: 1 to 30 values. An empty list ends the program; the server responds to more than 30 with
    ///     `invalidArgument`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, arrayContainsAny values: [Any]) -> Query {
        filtered(field, .arrayContainsAny, values)
    }
    /// Documents whose field is an array that contains at least one of the values.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - values: 1 to 30 values. An empty list ends the program; the server responds to more than 30 with
    ///     `invalidArgument`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, arrayContainsAny values: [Any]) -> Query {
        filtered(path, .arrayContainsAny, values)
    }

    /// Documents whose field equals one of the values.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - values: 1 to 30 values. An empty list ends the program; the server responds to more than 30 with
    ///     `invalidArgument`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, in values: [Any]) -> Query { filtered(field, .in, values) }
    /// Documents whose field equals one of the values.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - values: 1 to 30 values. An empty list ends the program; the server responds to more than 30 with
    ///     `invalidArgument`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, in values: [Any]) -> Query { filtered(path, .in, values) }

    /// Documents that have the field with a value that is not null and equals none of the values.
    /// - Parameters:
    ///   - field: the field's path with dots, for example `address.city`. Names with other characters need a
    ///     `FieldPath`.
    ///   - values: 1 to 10 values. An empty list ends the program; the server responds to more than 10 with
    ///     `invalidArgument`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ field: String, notIn values: [Any]) -> Query { filtered(field, .notIn, values) }
    /// Documents that have the field with a value that is not null and equals none of the values.
    /// - Parameters:
    ///   - path: the field's path; `FieldPath.documentID()` for the document's id.
    ///   - values: 1 to 10 values. An empty list ends the program; the server responds to more than 10 with
    ///     `invalidArgument`.
    /// - Returns: a new query; this one does not change.
    @discardableResult
    public func whereField(_ path: FieldPath, notIn values: [Any]) -> Query { filtered(path, .notIn, values) }
}
