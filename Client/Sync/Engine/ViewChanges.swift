import HearthModel

/// The effect of changed documents on a view, before it is applied.
struct ViewDocumentChanges {
    var documents: DocumentSet
    var mutatedKeys: Set<ResourcePath>
    var changes = DocumentChangeSet()
    /// A full limit lost a document: the documents beyond the limit must be read.
    var needsRefill = false
}
