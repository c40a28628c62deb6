/// The kind of a document's change between two snapshots.
public enum DocumentChangeType: Int, Sendable {
    /// The document was added to the result.
    case added = 0
    /// The document changed and remains in the result.
    case modified = 1
    /// The document was removed from the result.
    case removed = 2
}
