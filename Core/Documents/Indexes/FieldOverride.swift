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

    /// Documents expire by the field's time.
    package struct TimeToLive: Sendable, Hashable {
        /// Seconds from the field's time to the expiry, 0 to 2,147,483,647.
        package var offsetSeconds: Int64

        package init(offsetSeconds: Int64 = 0) {
            self.offsetSeconds = offsetSeconds
        }
    }

    package var collectionID: String
    /// Nil for all fields of the collection (`*`).
    package var path: FieldPath?
    /// The indexes that replace the automatic ones; empty for an exempt field.
    package var indexes: [Index]
    /// The policy by which documents expire at this field's time; nil for none.
    package var timeToLive: TimeToLive?

    package init(collectionID: String, path: FieldPath?, indexes: [Index], timeToLive: TimeToLive? = nil) {
        self.collectionID = collectionID
        self.path = path
        self.indexes = indexes
        self.timeToLive = timeToLive
    }

    package func isSameField(as other: FieldOverride) -> Bool {
        UTF8Order.equal(collectionID, other.collectionID) && path == other.path
    }

    package static func == (lhs: FieldOverride, rhs: FieldOverride) -> Bool {
        UTF8Order.equal(lhs.collectionID, rhs.collectionID) && lhs.path == rhs.path && lhs.indexes == rhs.indexes
            && lhs.timeToLive == rhs.timeToLive
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
