internal import Foundation
internal import HearthModel
internal import HearthSync

/// The result of a query at one time, and its changes since the previous snapshot.
public final class QuerySnapshot: Sendable, Hashable {
    /// The query of the result.
    public let query: Query
    let view: ViewSnapshot
    /// Whether the result is from the cache, and whether it contains local writes.
    public let metadata: SnapshotMetadata
    /// Created at the first access.
    private let made = Locked<[QueryDocumentSnapshot]?>(nil)

    init(query: Query, view: ViewSnapshot) {
        self.query = query
        self.view = view
        metadata = SnapshotMetadata(hasPendingWrites: view.hasPendingWrites, isFromCache: view.isFromCache)
    }

    /// Whether the result has no documents.
    public var isEmpty: Bool { view.documents.isEmpty }

    /// The number of documents.
    public var count: Int { view.documents.count }

    /// The documents in the query's order.
    public var documents: [QueryDocumentSnapshot] {
        made.with { made in
            if let made { return made }
            let documents = view.documents.map { snapshot(of: $0) }
            made = documents
            return documents
        }
    }

    /// The changes since the previous snapshot, without changes of only the metadata.
    public var documentChanges: [DocumentChange] { documentChanges(includeMetadataChanges: false) }

    /// The changes since the previous snapshot.
    /// - Parameter includeMetadataChanges: whether changes of only the metadata are included, as modifications. True
    ///   requires a listener with `includeMetadataChanges`, otherwise it ends the program.
    /// - Returns: the changes, in the order in which the indexes of `DocumentChange` count: removals first. In the
    ///   first snapshot, all documents are additions.
    @discardableResult
    public func documentChanges(includeMetadataChanges: Bool) -> [DocumentChange] {
        orTrap { () throws(Status) in try checkedChanges(includeMetadataChanges: includeMetadataChanges) }
    }

    func checkedChanges(includeMetadataChanges: Bool) throws(Status) -> [DocumentChange] {
        if includeMetadataChanges && view.excludesMetadataChanges {
            throw .invalidArgument(
                "To include metadata changes with your document changes, you must call "
                    + "addSnapshotListener(includeMetadataChanges: true).")
        }
        return ChangeIndexes.changes(of: view, includeMetadataChanges: includeMetadataChanges) { snapshot(of: $0) }
    }

    private func snapshot(of document: ClientDocument) -> QueryDocumentSnapshot {
        QueryDocumentSnapshot(
            firestore: query.firestore, found: document,
            metadata: SnapshotMetadata(
                hasPendingWrites: view.mutatedKeys.contains(document.key), isFromCache: view.isFromCache),
            readTime: view.readTime.timestamp)
    }

    public static func == (left: QuerySnapshot, right: QuerySnapshot) -> Bool {
        left.query == right.query && left.view.looksLike(right.view)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(query)
        hasher.combine(count)
        hasher.combine(metadata)
    }
}
