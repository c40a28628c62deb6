internal import Foundation
internal import HearthModel
internal import HearthSync

/// A reference to a collection: a query over all its documents, and the parent of new documents.
public final class CollectionReference: Query, @unchecked Sendable {
    // As in `Query`, all properties are constants.

    init(firestore: Firestore, path: ResourcePath) {
        super.init(firestore: firestore, ClientQuery(path: path))
    }

    /// The last segment of the path.
    public var collectionID: String { model.path.segments[model.path.segments.count - 1] }

    /// The path of the collection: segments joined by `/`.
    public var path: String { model.path.string }

    /// The document that contains the collection; nil for a root collection.
    public var parent: DocumentReference? {
        let parent = model.path.parent
        return parent.isRoot ? nil : DocumentReference(firestore: firestore, key: parent)
    }

    /// A reference to a new document with a random id of 20 characters. Nothing is written.
    @discardableResult
    public func document() -> DocumentReference {
        DocumentReference(firestore: firestore, key: model.path.appending(Paths.newDocumentID()))
    }

    /// A reference to a document in this collection.
    /// - Parameter documentPath: the path below this collection: an odd number of segments joined by `/`, usually one
    ///   id. The program ends for any other path.
    @discardableResult
    public func document(_ documentPath: String) -> DocumentReference {
        orTrap { () throws(Status) in
            DocumentReference(firestore: firestore, key: try Paths.document(documentPath, below: model.path))
        }
    }

    /// Creates a document with a random id.
    /// - Parameter completion: receives nil after the server has committed the write, or an `NSError` of
    ///   `FirestoreErrorDomain` with the server's code. It waits while the client is offline.
    /// - Returns: the reference to the new document, at once.
    @discardableResult
    public func addDocument(data: [String: Any], completion: (((any Error)?) -> Void)? = nil) -> DocumentReference {
        let document = document()
        document.setData(data, completion: completion)
        return document
    }

    /// Creates a document with a random id, and waits until the server has committed it.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code, for example `permissionDenied`.
    ///   `CancellationError` when the task is cancelled; the write remains queued.
    @discardableResult
    nonisolated(nonsending) public func addDocument(data: [String: Any]) async throws -> DocumentReference {
        let document = document()
        try await document.setData(data)
        return document
    }

    /// Creates a document with a random id from an encodable value.
    /// - Parameters:
    ///   - encoder: encodes `value` to an object.
    ///   - completion: receives nil after the server has committed the write, or an `NSError` of
    ///     `FirestoreErrorDomain`.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func addDocument<T: Encodable>(
        from value: T, encoder: Firestore.Encoder = Firestore.Encoder(), completion: (((any Error)?) -> Void)? = nil
    ) throws -> DocumentReference {
        addDocument(data: try encoder.encode(value), completion: completion)
    }
}
