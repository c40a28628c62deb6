internal import Foundation
internal import HearthModel
internal import HearthSync

/// A collection: a query over all its documents, and the place for new ones.
public final class CollectionReference: Query, @unchecked Sendable {
    // As `Query`: all constants.

    init(firestore: Firestore, path: ResourcePath) {
        super.init(firestore: firestore, ClientQuery(path: path))
    }

    /// The last segment of the path.
    public var collectionID: String { model.path.segments[model.path.segments.count - 1] }

    public var path: String { model.path.string }

    /// nil for a collection at the root.
    public var parent: DocumentReference? {
        let parent = model.path.parent
        return parent.isRoot ? nil : DocumentReference(firestore: firestore, key: parent)
    }

    /// A new document's, with a random id of 20 characters.
    @discardableResult
    public func document() -> DocumentReference {
        DocumentReference(firestore: firestore, key: model.path.appending(Paths.newDocumentID()))
    }

    /// - Parameter documentPath: an odd number of segments, mostly an id.
    @discardableResult
    public func document(_ documentPath: String) -> DocumentReference {
        orTrap { () throws(Status) in
            DocumentReference(firestore: firestore, key: try Paths.document(documentPath, below: model.path))
        }
    }

    /// Adds a document with a random id.
    @discardableResult
    public func addDocument(data: [String: Any], completion: (((any Error)?) -> Void)? = nil) -> DocumentReference {
        let document = document()
        document.setData(data, completion: completion)
        return document
    }

    @discardableResult
    nonisolated(nonsending) public func addDocument(data: [String: Any]) async throws -> DocumentReference {
        let document = document()
        try await document.setData(data)
        return document
    }

    @discardableResult
    public func addDocument<T: Encodable>(
        from value: T, encoder: Firestore.Encoder = Firestore.Encoder(), completion: (((any Error)?) -> Void)? = nil
    ) throws -> DocumentReference {
        addDocument(data: try encoder.encode(value), completion: completion)
    }
}
