internal import Foundation
internal import HearthModel
internal import HearthSync

/// A query's result at one moment, and how it differs from the one before.
public final class QuerySnapshot: Sendable, Hashable {
    public let query: Query
    let view: ViewSnapshot
    public let metadata: SnapshotMetadata
    /// Made when first asked for.
    private let made = Locked<[QueryDocumentSnapshot]?>(nil)

    init(query: Query, view: ViewSnapshot) {
        self.query = query
        self.view = view
        metadata = SnapshotMetadata(hasPendingWrites: view.hasPendingWrites, isFromCache: view.isFromCache)
    }

    public var isEmpty: Bool { view.documents.isEmpty }

    public var count: Int { view.documents.count }

    /// In the query's order.
    public var documents: [QueryDocumentSnapshot] {
        made.with { made in
            if let made { return made }
            let documents = view.documents.map { snapshot(of: $0) }
            made = documents
            return documents
        }
    }

    /// Without those changes that touch only metadata.
    public var documentChanges: [DocumentChange] { documentChanges(includeMetadataChanges: false) }

    /// - Parameter includeMetadataChanges: whether changes that touch only metadata are wanted, as modifications. Only of a
    ///   listener that was told to hear them.
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
                hasPendingWrites: view.mutatedKeys.contains(document.key), isFromCache: view.isFromCache))
    }

    public static func == (left: QuerySnapshot, right: QuerySnapshot) -> Bool {
        left.query == right.query && left.view == right.view
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(query)
        hasher.combine(count)
        hasher.combine(metadata)
    }
}

/// One document's change between two snapshots.
public final class DocumentChange: Sendable, Hashable {
    public let type: DocumentChangeType
    /// The new document; of a removal the old one.
    public let document: QueryDocumentSnapshot
    /// Where it stood, when all changes before this one were done; `UInt(NSNotFound)` for an addition.
    public let oldIndex: UInt
    /// Where it stands, when this change is done, too; `UInt(NSNotFound)` for a removal.
    public let newIndex: UInt

    init(type: DocumentChangeType, document: QueryDocumentSnapshot, oldIndex: UInt, newIndex: UInt) {
        self.type = type
        self.document = document
        self.oldIndex = oldIndex
        self.newIndex = newIndex
    }

    public static func == (left: DocumentChange, right: DocumentChange) -> Bool {
        left.type == right.type && left.document == right.document && left.oldIndex == right.oldIndex
            && left.newIndex == right.newIndex
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(document)
        hasher.combine(oldIndex)
        hasher.combine(newIndex)
    }
}
