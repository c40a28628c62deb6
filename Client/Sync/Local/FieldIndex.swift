import HearthModel

/// One segment list of a client-side index.
package struct FieldIndex: Sendable, Equatable {
    package struct Segment: Sendable, Equatable {
        package enum Kind: UInt8, Sendable { case ascending, descending, contains }
        package var path: FieldPath
        package var kind: Kind

        package init(path: FieldPath, kind: Kind) {
            self.path = path
            self.kind = kind
        }
    }

    /// -1 until the index manager assigns an id.
    package var id: Int
    package var collectionGroup: String
    package var segments: [Segment]
    var sequenceNumber: Int64 = 0
    var offset = IndexOffset.none

    package init(id: Int = -1, collectionGroup: String, segments: [Segment]) {
        self.id = id
        self.collectionGroup = collectionGroup
        self.segments = segments
    }
}
