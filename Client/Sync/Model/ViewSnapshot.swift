import HearthModel

/// What a listener of a query is told.
public struct ViewSnapshot: Sendable, Equatable {
    public struct Change: Sendable, Equatable {
        public enum Kind: UInt8, Sendable {
            case removed
            case added
            case modified
            /// Only the pending state changed.
            case metadata
        }

        public var kind: Kind
        /// The new document; of a removal the old one.
        public var document: ClientDocument

        public init(kind: Kind, document: ClientDocument) {
            self.kind = kind
            self.document = document
        }
    }

    public var query: ClientQuery
    public var documents: DocumentSet
    /// Empty for the first snapshot of a listener.
    public var oldDocuments: DocumentSet
    /// Removals, then additions, then modifications and metadata; each group in the query's order.
    public var changes: [Change]
    public var mutatedKeys: Set<ResourcePath>
    public var isFromCache: Bool
    public var syncStateChanged: Bool
    public var excludesMetadataChanges: Bool
    public var hasCachedResults: Bool

    public var hasPendingWrites: Bool { !mutatedKeys.isEmpty }

    public init(
        query: ClientQuery, documents: DocumentSet, oldDocuments: DocumentSet, changes: [Change],
        mutatedKeys: Set<ResourcePath>, isFromCache: Bool, syncStateChanged: Bool, excludesMetadataChanges: Bool,
        hasCachedResults: Bool
    ) {
        self.query = query
        self.documents = documents
        self.oldDocuments = oldDocuments
        self.changes = changes
        self.mutatedKeys = mutatedKeys
        self.isFromCache = isFromCache
        self.syncStateChanged = syncStateChanged
        self.excludesMetadataChanges = excludesMetadataChanges
        self.hasCachedResults = hasCachedResults
    }
}
