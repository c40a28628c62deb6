/// The documents that a receiver watches, as coarse as an index needs it.
package enum WatchScope: Hashable, Sendable {
    /// One document, by its key.
    case document([UInt8])
    /// The documents of one collection, by the prefix of their keys.
    case collection([UInt8])
    /// The documents of all collections with an id, by its UTF-8 bytes.
    case collectionGroup([UInt8])
    case everything

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .document(let bytes):
            hasher.combine(0)
            hasher.combine(bytes: bytes)
        case .collection(let bytes):
            hasher.combine(1)
            hasher.combine(bytes: bytes)
        case .collectionGroup(let bytes):
            hasher.combine(2)
            hasher.combine(bytes: bytes)
        case .everything: hasher.combine(3)
        }
    }
}
