internal import Foundation
internal import HearthModel

/// The path of a field: the keys of the maps that contain it, and its name. Unlike in strings with dots, segments may
/// contain any characters.
public final class FieldPath: Hashable, Sendable, CustomStringConvertible {
    let model: ModelFieldPath

    /// The path of nested names, from the document's field to the innermost name.
    /// - Parameter fields: at least one name; none may be empty. The program ends for any other list.
    public init(_ fields: [String]) {
        model = orTrap { () throws(Status) in try Self.checked(fields) }
    }

    private init(model: ModelFieldPath) { self.model = model }

    /// The document's id, for queries.
    /// - Returns: the path of the id.
    @discardableResult
    public class func documentID() -> FieldPath { FieldPath(model: .documentName) }

    public static func == (left: FieldPath, right: FieldPath) -> Bool { left.model == right.model }

    public func hash(into hasher: inout Hasher) { hasher.combine(model) }

    public var description: String { model.string }

    static func checked(_ fields: [String]) throws(Status) -> ModelFieldPath {
        if fields.isEmpty {
            throw .invalidArgument("Invalid field path. Provide at least one field name, and none that is empty.")
        }
        if let index = fields.firstIndex(where: \.isEmpty) {
            throw .invalidArgument("Invalid field name at index \(index). Field names must not be empty.")
        }
        return ModelFieldPath(segments: fields)
    }

    /// The path of a string with dots.
    static func parse(_ string: String) throws(Status) -> ModelFieldPath {
        let forbidden = "~*/[]"
        if let character = string.first(where: { forbidden.contains($0) }) {
            throw .invalidArgument(
                "Invalid field path (\(string)). Paths must not contain '\(character)': use FieldPath for such a name.")
        }
        let segments = string.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        if segments.contains("") {
            throw .invalidArgument(
                "Invalid field path (\(string)). Paths must not be empty, begin with '.', end with '.', or contain '..'."
            )
        }
        return ModelFieldPath(segments: segments)
    }

    /// The path of a string with dots or of a `FieldPath`, for API functions that accept either.
    static func parse(any field: Any, what: String) throws(Status) -> ModelFieldPath {
        if let field = field as? FieldPath { return field.model }
        if let field = field as? String { return try parse(field) }
        throw .invalidArgument("\(what) must be of type String or FieldPath, but was \(type(of: field)).")
    }
}
