import HearthModel

/// The event that a listener of a query receives.
package struct ViewSnapshot: Sendable, Equatable {
    package struct Change: Sendable, Equatable {
        package enum Kind: UInt8, Sendable {
            case removed
            case added
            case modified
            /// Only the pending state changed.
            case metadata
        }

        package var kind: Kind
        /// The new document; for a removal the old one.
        package var document: ClientDocument

        package init(kind: Kind, document: ClientDocument) {
            self.kind = kind
            self.document = document
        }
    }

    /// The version of the server's data in a snapshot that is not from the cache; `none` in all others. Snapshots with
    /// the same contents are equal, whenever they were read.
    package struct ReadTime: Sendable, Equatable {
        package var timestamp: Timestamp

        package init(_ timestamp: Timestamp) { self.timestamp = timestamp }

        package static func == (left: ReadTime, right: ReadTime) -> Bool { true }
    }

    package var query: ClientQuery
    package var documents: DocumentSet
    /// Empty for the first snapshot of a listener.
    package var oldDocuments: DocumentSet
    /// Removals, then additions, then modifications and metadata; each group in the query's order.
    package var changes: [Change]
    package var mutatedKeys: Set<ResourcePath>
    package var isFromCache: Bool
    package var syncStateChanged: Bool
    package var excludesMetadataChanges: Bool
    package var hasCachedResults: Bool
    package var readTime = ReadTime(.none)

    package var hasPendingWrites: Bool { !mutatedKeys.isEmpty }

    /// Whether users see the same in both: the documents, their changes, and the metadata.
    package func looksLike(_ other: ViewSnapshot) -> Bool {
        query == other.query && isFromCache == other.isFromCache && mutatedKeys == other.mutatedKeys
            && excludesMetadataChanges == other.excludesMetadataChanges
            && documents.count == other.documents.count && oldDocuments.count == other.oldDocuments.count
            && documents.elementsEqual(other.documents) { $0.looksLike($1) }
            && oldDocuments.elementsEqual(other.oldDocuments) { $0.looksLike($1) }
            && changes.elementsEqual(other.changes) { $0.kind == $1.kind && $0.document.looksLike($1.document) }
    }

    package init(
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
