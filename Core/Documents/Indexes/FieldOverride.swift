import HearthModel

/// A deviation of one field from the automatic indexes. Source: `fieldOverrides` of firestore.indexes.json.
package struct FieldOverride: Sendable, Hashable {
    package struct Index: Sendable, Hashable {
        package var scope: IndexDefinition.Scope
        package var kind: IndexField.Kind

        package init(scope: IndexDefinition.Scope, kind: IndexField.Kind) {
            self.scope = scope
            self.kind = kind
        }
    }

    package var collectionID: String
    /// Nil for all fields of the collection (`*`).
    package var path: FieldPath?
    /// The indexes that replace the automatic ones; empty for an exempt field.
    package var indexes: [Index]
    /// Whether documents expire by this field's time.
    package var isTimeToLive: Bool

    package init(collectionID: String, path: FieldPath?, indexes: [Index], isTimeToLive: Bool = false) {
        self.collectionID = collectionID
        self.path = path
        self.indexes = indexes
        self.isTimeToLive = isTimeToLive
    }

    package static func == (lhs: FieldOverride, rhs: FieldOverride) -> Bool {
        UTF8Order.equal(lhs.collectionID, rhs.collectionID) && lhs.path == rhs.path && lhs.indexes == rhs.indexes
            && lhs.isTimeToLive == rhs.isTimeToLive
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(path)
        hasher.combine(indexes)
    }

    package static let automaticIndexes: [Index] = [
        Index(scope: .collection, kind: .ascending), Index(scope: .collection, kind: .descending),
        Index(scope: .collection, kind: .contains),
    ]
}
