import HearthModel

/// A composite index, or a single-field index beyond the automatic ones.
package struct IndexDefinition: Sendable, Hashable {
    package enum Scope: String, Sendable {
        case collection = "COLLECTION"
        case collectionGroup = "COLLECTION_GROUP"
        /// The expiry times of a collection group's documents, by the one field of a time-to-live policy: no index of
        /// queries. It has the entries of an index of collection group scope, of timestamps alone.
        case expiry = "EXPIRY"
    }

    package enum State: String, Sendable {
        case creating = "CREATING"
        case ready = "READY"
    }

    /// Unique in its database, never reused.
    package var id: UInt32
    package var collectionID: String
    package var scope: Scope
    /// Without `__name__`.
    package var fields: [IndexField]
    /// The direction of `__name__`, which ends every index.
    package var nameDescending: Bool
    package var state: State

    package init(
        id: UInt32, collectionID: String, scope: Scope, fields: [IndexField], nameDescending: Bool,
        state: State = .creating
    ) {
        self.id = id
        self.collectionID = collectionID
        self.scope = scope
        self.fields = fields
        self.nameDescending = nameDescending
        self.state = state
    }

    package static func == (lhs: IndexDefinition, rhs: IndexDefinition) -> Bool {
        lhs.id == rhs.id && lhs.state == rhs.state && lhs.isSame(as: rhs)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(fields)
    }

    /// Whether two definitions describe the same index.
    package func isSame(as other: IndexDefinition) -> Bool {
        UTF8Order.equal(collectionID, other.collectionID) && scope == other.scope && fields == other.fields
            && nameDescending == other.nameDescending
    }

    /// A nearest-neighbour search reads every document of its filtered set, and documents are ordered by name without an
    /// index, in both directions: an index with a vector field, or of names alone, needs no entries of its own.
    var hasEntries: Bool { !fields.isEmpty && hasNoVector }

    /// Whether the index is one that the settings of a field make, and not a composite index.
    var isSingleField: Bool {
        guard fields.count == 1, hasNoVector else { return false }
        return nameDescending == (fields[0].kind == .descending)
    }

    var hasNoVector: Bool {
        !fields.contains { field in
            if case .vector = field.kind { true } else { false }
        }
    }
}
