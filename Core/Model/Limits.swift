/// The limits of documents and values. Each module adds its own in its `Limits+….swift`.
///
/// Source: "Usage and limits" of the Firestore documentation, where no other source is given. A bound marked "ours"
/// guards memory or time and is not part of the service's contract.
@usableFromInline package enum Limits {
    // MARK: Documents and values

    /// A document's size in bytes, computed as documented under "Storage size calculations".
    package static let documentSizeBytesMax = 1_048_576
    /// The size in bytes of one field's value: 1 MiB less 89 bytes.
    package static let fieldValueSizeBytesMax = 1_048_487
    /// The UTF-8 length of a collection or document id.
    package static let idSizeBytesMax = 1500
    /// The UTF-8 length of a document's name below the database.
    package static let documentNameSizeBytesMax = 6144
    /// Pairs of collection id and document id in a name.
    package static let pathDepthMax = 100
    /// The UTF-8 length of a field name, and of a field path as a whole.
    package static let fieldPathSizeBytesMax = 1500
    /// Segments of a field path.
    package static let fieldPathSegmentsMax = 20
    /// Levels of maps and arrays in a field's value; its own map or array is level 1.
    package static let valueDepthMax = 20
    /// Dimensions of a vector.
    @usableFromInline package static let vectorDimensionMax = 2048
}
