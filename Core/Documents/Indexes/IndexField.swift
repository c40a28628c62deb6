import HearthModel

/// One field of an index definition.
package struct IndexField: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case ascending
        case descending
        case contains
        /// - Parameter dimension: of the vectors, 1 to 2048.
        case vector(dimension: Int)
    }

    package var path: FieldPath
    package var kind: Kind

    package init(path: FieldPath, kind: Kind) {
        self.path = path
        self.kind = kind
    }
}
