internal import Foundation
internal import HearthModel

/// The operand of a comparison with a document's name.
struct KeyOperand {
    private let query: Query

    init(_ query: Query) { self.query = query }

    /// In a filter: a document's id, its path below the query's parent for a collection group, or a reference.
    func filter(_ value: Any) throws(Status) -> Value {
        if let reference = value as? DocumentReference { return try name(of: reference) }
        guard let string = value as? String else {
            throw .invalidArgument(
                "Invalid query. When querying by document ID you must provide a valid string or DocumentReference, but it "
                    + "was of type: \(type(of: value)).")
        }
        if string.isEmpty {
            throw .invalidArgument(
                "Invalid query. When querying by document ID you must provide a valid document ID, but it was an empty "
                    + "string.")
        }
        return try name(of: string, "querying")
    }

    /// In a cursor: the same operands.
    func cursor(_ value: Any) throws(Status) -> Value {
        if let reference = value as? DocumentReference { return try name(of: reference) }
        guard let string = value as? String else {
            throw .invalidArgument(
                "Invalid query. Expected a string for the document ID, but got \(type(of: value)).")
        }
        return try name(of: string, "ordering")
    }

    private func name(of reference: DocumentReference) throws(Status) -> Value {
        try query.firestore.reader.queryValue(reference)
    }

    private func name(of string: String, _ what: String) throws(Status) -> Value {
        if query.model.collectionGroup == nil, string.utf8.contains(UInt8(ascii: "/")) {
            throw .invalidArgument(
                "Invalid query. When \(what) a collection by document ID you must provide a plain document ID, but "
                    + "'\(string)' contains a '/' character.")
        }
        let path = ResourcePath(
            query.model.path.segments
                + string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map {
                    String(Substring($0))
                })
        guard path.isDocument, !path.segments.contains("") else {
            throw .invalidArgument(
                "Invalid query. When \(what) a collection group by document ID, the value provided must result in a valid "
                    + "document path, but '\(string)' is not because it has an odd number of segments or an empty one.")
        }
        return .reference(ResourceName(database: query.firestore.databaseName, path: path).string)
    }
}
