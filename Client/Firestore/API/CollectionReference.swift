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
    /// - Returns: the reference.
    @discardableResult
    public func document() -> DocumentReference {
        DocumentReference(firestore: firestore, key: model.path.appending(Paths.newDocumentID()))
    }

    /// A reference to a document in this collection.
    /// - Parameter documentPath: the path below this collection: an odd number of segments joined by `/`, usually one
    ///   id. The program ends for any other path.
    /// - Returns: the reference. Nothing is read.
    @discardableResult
    public func document(_ documentPath: String) -> DocumentReference {
        orTrap { () throws(Status) in
            DocumentReference(firestore: firestore, key: try Paths.document(documentPath, below: model.path))
        }
    }

    /// Creates a document with a random id. The write is visible to reads and listeners of this program at once, also
    /// offline. Invalid data ends the program.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when it has
    ///     committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code. While
    ///     the client is offline it waits; it receives `cancelled` when the instance is terminated.
    /// - Returns: the reference to the new document, at once.
    @discardableResult
    public func addDocument(data: [String: Any], completion: (((any Error)?) -> Void)? = nil) -> DocumentReference {
        let document = document()
        document.setData(data, completion: completion)
        return document
    }

    /// Creates a document with a random id, and waits until the server has committed it.
    /// - Parameter data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and
    ///   arrays in at most 20 levels.
    /// - Returns: the reference to the new document.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code, for example `permissionDenied`;
    ///   `cancelled` when the instance is terminated. `CancellationError` when the task is cancelled; the write remains
    ///   queued.
    @discardableResult
    nonisolated(nonsending) public func addDocument(data: [String: Any]) async throws -> DocumentReference {
        let document = document()
        try await document.setData(data)
        return document
    }

    /// Creates a document with a random id from an encodable value.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when it has
    ///     committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code. While
    ///     the client is offline it waits; it receives `cancelled` when the instance is terminated.
    /// - Returns: the reference to the new document, at once.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func addDocument<T: Encodable>(
        from value: T, encoder: Firestore.Encoder = Firestore.Encoder(), completion: (((any Error)?) -> Void)? = nil
    ) throws -> DocumentReference {
        addDocument(data: try encoder.encode(value), completion: completion)
    }
}
