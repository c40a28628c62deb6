import HearthModel
import HearthDocuments

/// An unchecked index from a file or from the admin API.
package struct IndexDraft {
    var collectionID: String
    var scope: IndexDefinition.Scope
    /// `__name__` may be among them, as the last one, or before a vector field.
    var fields: [IndexField]

    package init(collectionID: String, scope: IndexDefinition.Scope, fields: [IndexField]) {
        self.collectionID = collectionID
        self.scope = scope
        self.fields = fields
    }

    /// The checked definition, without an id.
    /// - Throws: INVALID_ARGUMENT when Firestore would not accept such an index. Source:
    ///   google.firestore.admin.v1.Index.
    package func definition() throws(Status) -> IndexDefinition {
        try ResourceName.validate(collectionID: collectionID)
        var fields = fields
        let nameDirection = try takeName(from: &fields)
        if fields.isEmpty, nameDirection == nil { throw .invalidArgument("An index needs a field.") }
        // Documents are ordered by name ascending without an index; descending, the service asks for one.
        if fields.isEmpty, nameDirection == false { throw Self.notNecessary }
        if fields.count > Limits.compositeIndexFieldsMax {
            throw .invalidArgument(
                "An index may have at most \(Limits.compositeIndexFieldsMax) fields, this one has \(fields.count).")
        }
        for (index, field) in fields.enumerated() where fields[..<index].contains(where: { $0.path == field.path }) {
            throw .invalidArgument("The field \(field.path) is in the index more than once.")
        }
        if fields.count(where: { $0.kind == .contains }) > 1 {
            throw .invalidArgument("An index may have at most one field with an array configuration.")
        }
        try checkVectors(fields)
        let implied = fields.last { !Self.isVector($0) }?.kind == .descending
        if fields.count == 1, scope == .collection, !Self.isVector(fields[0]), nameDirection ?? implied == implied {
            throw Self.notNecessary
        }
        return IndexDefinition(
            id: 0, collectionID: collectionID, scope: scope, fields: fields, nameDescending: nameDirection ?? implied)
    }

    private static var notNecessary: Status {
        .invalidArgument("this index is not necessary, configure using single field index controls")
    }

    /// Whether `__name__` is descending, if present.
    private func takeName(from fields: inout [IndexField]) throws(Status) -> Bool? {
        guard let index = fields.firstIndex(where: \.path.isDocumentName) else { return nil }
        let isBeforeVector = index == fields.count - 2 && Self.isVector(fields[index + 1])
        guard index == fields.count - 1 || isBeforeVector else {
            throw .invalidArgument("__name__ must be the last field of an index.")
        }
        switch fields.remove(at: index).kind {
        case .ascending: return false
        case .descending: return true
        default: throw .invalidArgument("__name__ can only be ASCENDING or DESCENDING in an index.")
        }
    }

    private func checkVectors(_ fields: [IndexField]) throws(Status) {
        for (index, field) in fields.enumerated() {
            guard case .vector(let dimension) = field.kind else { continue }
            guard (1...Limits.vectorDimensionMax).contains(dimension) else {
                throw .invalidArgument(
                    "The dimension of a vector index must lie between 1 and \(Limits.vectorDimensionMax), not \(dimension)."
                )
            }
            if index != fields.count - 1 {
                throw .invalidArgument("A vector field must be the last one of an index, and the only vector field.")
            }
        }
    }

    package static func isVector(_ field: IndexField) -> Bool {
        if case .vector = field.kind { true } else { false }
    }
}

extension IndexDefinition {
    /// All fields as clients see them: with `__name__`, which a vector field follows.
    package var shownFields: [IndexField] {
        var shown = fields
        let name = IndexField(path: .documentName, kind: nameDescending ? .descending : .ascending)
        shown.insert(name, at: shown.last.map(IndexDraft.isVector) == true ? shown.count - 1 : shown.count)
        return shown
    }
}
