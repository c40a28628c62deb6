internal import Foundation
internal import HearthModel
internal import HearthSync

/// A reference to a document, which may or may not exist.
public final class DocumentReference: Sendable {
    /// The database of the document.
    public let firestore: Firestore
    let key: ResourcePath

    init(firestore: Firestore, key: ResourcePath) {
        self.firestore = firestore
        self.key = key
    }

    /// Only `Firestore.Decoder` decodes references.
    /// - Throws: `FirestoreDecodingError.decodingIsNotSupported`, always.
    public init(from decoder: any Swift.Decoder) throws {
        throw FirestoreDecodingError.decodingIsNotSupported(
            "DocumentReference values can only be decoded with Firestore.Decoder.")
    }

    /// The last segment of the path.
    public var documentID: String { key.segments[key.segments.count - 1] }

    /// The path of the document: segments joined by `/`.
    public var path: String { key.string }

    /// The collection that contains the document.
    public var parent: CollectionReference { CollectionReference(firestore: firestore, path: key.parent) }

    /// A reference to a collection in this document.
    /// - Parameter collectionPath: the path below this document: an odd number of segments joined by `/`, usually one
    ///   id. The program ends for any other path.
    /// - Returns: the reference. Nothing is read.
    @discardableResult
    public func collection(_ collectionPath: String) -> CollectionReference {
        orTrap { () throws(Status) in
            CollectionReference(firestore: firestore, path: try Paths.collection(collectionPath, below: key))
        }
    }

    // MARK: Writing

    /// Creates or replaces the document. The write is visible to reads and listeners of this program at once, also
    /// offline. Invalid data ends the program.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when it has
    ///     committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code. While
    ///     the client is offline it waits; it receives `cancelled` when the instance is terminated.
    public func setData(_ data: [String: Any], completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in try MutationBuilder(firestore).set(data, key) }
    }

    /// Creates or replaces the document, and waits until the server has committed it. Invalid data ends the program.
    /// - Parameter data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and
    ///   arrays in at most 20 levels.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code, for example `permissionDenied`;
    ///   `cancelled` when the instance is terminated. `CancellationError` when the task is cancelled; the write remains
    ///   queued.
    nonisolated(nonsending) public func setData(_ data: [String: Any]) async throws {
        try await write { () throws(Status) in try MutationBuilder(firestore).set(data, key) }
    }

    /// Creates or replaces the document, or merges data into it. Invalid data ends the program.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - merge: true retains all fields that `data` does not contain; false replaces the document.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when it has
    ///     committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code. While
    ///     the client is offline it waits; it receives `cancelled` when the instance is terminated.
    public func setData(_ data: [String: Any], merge: Bool, completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in try MutationBuilder(firestore).set(data, key, merge: merge) }
    }

    /// Creates or replaces the document, or merges data into it. Invalid data ends the program.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - merge: true retains all fields that `data` does not contain; false replaces the document.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code, for example `permissionDenied`;
    ///   `cancelled` when the instance is terminated. `CancellationError` when the task is cancelled; the write remains
    ///   queued.
    nonisolated(nonsending) public func setData(_ data: [String: Any], merge: Bool) async throws {
        try await write { () throws(Status) in try MutationBuilder(firestore).set(data, key, merge: merge) }
    }

    /// Writes only the given fields of the document. Invalid data ends the program.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in `data`.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when it has
    ///     committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code. While
    ///     the client is offline it waits; it receives `cancelled` when the instance is terminated.
    public func setData(_ data: [String: Any], mergeFields: [Any], completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in try MutationBuilder(firestore).set(data, key, mergeFields: mergeFields)
        }
    }

    /// Writes only the given fields of the document. Invalid data ends the program.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in `data`.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code, for example `permissionDenied`;
    ///   `cancelled` when the instance is terminated. `CancellationError` when the task is cancelled; the write remains
    ///   queued.
    nonisolated(nonsending) public func setData(_ data: [String: Any], mergeFields: [Any]) async throws {
        try await write { () throws(Status) in try MutationBuilder(firestore).set(data, key, mergeFields: mergeFields) }
    }

    /// Creates or replaces the document with an encodable value.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when it has
    ///     committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code. While
    ///     the client is offline it waits; it receives `cancelled` when the instance is terminated.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    public func setData<T: Encodable>(
        from value: T, encoder: Firestore.Encoder = Firestore.Encoder(), completion: (((any Error)?) -> Void)? = nil
    ) throws {
        setData(try encoder.encode(value), completion: completion)
    }

    /// Merges an encodable value into the document, or replaces the document.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - merge: true retains all fields that the value does not contain; false replaces the document.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when it has
    ///     committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code. While
    ///     the client is offline it waits; it receives `cancelled` when the instance is terminated.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    public func setData<T: Encodable>(
        from value: T, merge: Bool, encoder: Firestore.Encoder = Firestore.Encoder(),
        completion: (((any Error)?) -> Void)? = nil
    ) throws {
        setData(try encoder.encode(value), merge: merge, completion: completion)
    }

    /// Writes only the given fields of an encodable value.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in the encoded value.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when it has
    ///     committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code. While
    ///     the client is offline it waits; it receives `cancelled` when the instance is terminated.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    public func setData<T: Encodable>(
        from value: T, mergeFields: [Any], encoder: Firestore.Encoder = Firestore.Encoder(),
        completion: (((any Error)?) -> Void)? = nil
    ) throws {
        setData(try encoder.encode(value), mergeFields: mergeFields, completion: completion)
    }

    /// Changes fields of a document that must exist. The write is visible to reads and listeners of this program at
    /// once, also offline. Invalid data ends the program.
    /// - Parameters:
    ///   - fields: the new values. The keys are field paths, as strings with dots or as `FieldPath`s.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when it has
    ///     committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code:
    ///     `notFound` when the document does not exist. While the client is offline it waits; it receives `cancelled`
    ///     when the instance is terminated.
    public func updateData(_ fields: [AnyHashable: Any], completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in try MutationBuilder(firestore).update(fields, key) }
    }

    /// Changes fields of a document that must exist. Invalid data ends the program.
    /// - Parameter fields: the new values. The keys are field paths, as strings with dots or as `FieldPath`s.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code, `notFound` when the document does not
    ///   exist; `cancelled` when the instance is terminated. `CancellationError` when the task is cancelled; the write
    ///   remains queued.
    nonisolated(nonsending) public func updateData(_ fields: [AnyHashable: Any]) async throws {
        try await write { () throws(Status) in try MutationBuilder(firestore).update(fields, key) }
    }

    /// Deletes the document, but not the collections in it. Deleting a document that does not exist succeeds. The write
    /// is visible to reads and listeners of this program at once, also offline.
    /// - Parameter completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when
    ///   it has committed the write, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code.
    ///   While the client is offline it waits; it receives `cancelled` when the instance is terminated.
    public func delete(completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in Mutation(key: key, kind: .delete) }
    }

    /// Deletes the document, but not the collections in it, and waits until the server has committed it. Deleting a
    /// document that does not exist succeeds.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code, for example `permissionDenied`;
    ///   `cancelled` when the instance is terminated. `CancellationError` when the task is cancelled; the write remains
    ///   queued.
    nonisolated(nonsending) public func delete() async throws {
        try await write { () throws(Status) in Mutation(key: key, kind: .delete) }
    }

    private func write(
        _ completion: (((any Error)?) -> Void)?, _ mutation: () throws(Status) -> Mutation
    ) {
        firestore.engine.write([orTrap(mutation)], completion: firestore.handler(completion))
    }

    nonisolated(nonsending) private func write(_ mutation: () throws(Status) -> Mutation) async throws {
        let mutation = orTrap(mutation)
        try await waiting { firestore.engine.write([mutation], completion: $0) }
    }

    // MARK: Reading

    /// Reads the document once, from the server, or from the cache when the server cannot be reached.
    /// - Parameter completion: runs on `FirestoreSettings.dispatchQueue` with the snapshot, or with an `NSError` of
    ///   `FirestoreErrorDomain`: `unavailable` when the server cannot be reached and the cache does not have the
    ///   document, otherwise the server's code.
    public func getDocument(completion: @escaping (DocumentSnapshot?, (any Error)?) -> Void) {
        getDocument(source: .default, completion: completion)
    }

    /// Reads the document once, from the server, or from the cache when the server cannot be reached.
    /// - Returns: the document's state; `exists` is false when there is no document.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `unavailable` when the server cannot be reached and the cache
    ///   does not have the document, otherwise the server's code. `CancellationError` when the task is cancelled.
    @discardableResult
    nonisolated(nonsending) public func getDocument() async throws -> DocumentSnapshot {
        try await getDocument(source: .default)
    }

    /// Reads the document once from a given source.
    /// - Parameters:
    ///   - source: the server, the cache, or the server with the cache when it cannot be reached.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` with the snapshot, or with an `NSError` of
    ///     `FirestoreErrorDomain`: `unavailable` when the source cannot be reached or does not have the document,
    ///     otherwise the server's code.
    public func getDocument(
        source: FirestoreSource, completion: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) {
        OneTimeRead.document(self, source, firestore.handler(completion))
    }

    /// Reads the document once from a given source.
    /// - Parameter source: the server, the cache, or the server with the cache when it cannot be reached.
    /// - Returns: the document's state; `exists` is false when there is no document.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `unavailable` when the source cannot be reached or does not
    ///   have the document, otherwise the server's code. `CancellationError` when the task is cancelled.
    @discardableResult
    nonisolated(nonsending) public func getDocument(source: FirestoreSource) async throws -> DocumentSnapshot {
        try await waiting(stoppable: { OneTimeRead.document(self, source, $0) })
    }

    /// Reads the document once and decodes it.
    /// - Parameters:
    ///   - type: an optional type decodes a document that does not exist as nil.
    ///   - serverTimestampBehavior: the value of server timestamps whose write is pending: null, an estimate or the
    ///     previous value.
    ///   - decoder: decodes the data: its strategies determine the form of dates, data and keys.
    ///   - source: the server, the cache, or the server with the cache when it cannot be reached.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` with the value, a `DecodingError` when the data does
    ///     not match the type, or an `NSError` of `FirestoreErrorDomain`: `unavailable` when the source cannot be
    ///     reached or does not have the document.
    public func getDocument<T: Decodable>(
        as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
        decoder: Firestore.Decoder = Firestore.Decoder(), source: FirestoreSource = .default,
        completion: @escaping (Result<T, any Error>) -> Void
    ) {
        getDocument(source: source) { snapshot, error in
            guard let snapshot else {
                return completion(.failure(error ?? Status(.internal, "There is neither document nor error.").nsError))
            }
            completion(Result { try snapshot.data(as: type, with: serverTimestampBehavior, decoder: decoder) })
        }
    }

    /// Reads the document once and decodes it.
    /// - Parameters:
    ///   - type: an optional type decodes a document that does not exist as nil.
    ///   - serverTimestampBehavior: the value of server timestamps whose write is pending: null, an estimate or the
    ///     previous value.
    ///   - decoder: decodes the data: its strategies determine the form of dates, data and keys.
    ///   - source: the server, the cache, or the server with the cache when it cannot be reached.
    /// - Returns: the decoded value.
    /// - Throws: `DecodingError` when the data does not match the type; an `NSError` of `FirestoreErrorDomain` when the
    ///   read fails: `unavailable` when the source cannot be reached or does not have the document. `CancellationError`
    ///   when the task is cancelled.
    @discardableResult
    nonisolated(nonsending) public func getDocument<T: Decodable>(
        as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
        decoder: Firestore.Decoder = Firestore.Decoder(), source: FirestoreSource = .default
    ) async throws -> T {
        try await getDocument(source: source).data(as: type, with: serverTimestampBehavior, decoder: decoder)
    }

    // MARK: Listening

    /// Listens to the document, without events for changes of only the metadata.
    /// - Parameter listener: runs on `FirestoreSettings.dispatchQueue` with each snapshot, or with an `NSError` of
    ///   `FirestoreErrorDomain`, which ends the listening. The first snapshot usually comes from the cache, also
    ///   offline, and another one from the server.
    /// - Returns: the registration. The listener runs until its `remove()` is called; it also runs when the
    ///   registration is released.
    @discardableResult
    public func addSnapshotListener(
        _ listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        addSnapshotListener(options: SnapshotListenOptions(), listener: listener)
    }

    /// Listens to the document.
    /// - Parameters:
    ///   - includeMetadataChanges: whether the listener also runs when only the metadata changed.
    ///   - listener: runs on `FirestoreSettings.dispatchQueue` with each snapshot, or with an `NSError` of
    ///     `FirestoreErrorDomain`, which ends the listening. The first snapshot usually comes from the cache, also
    ///     offline, and another one from the server.
    /// - Returns: the registration. The listener runs until its `remove()` is called; it also runs when the
    ///   registration is released.
    @discardableResult
    public func addSnapshotListener(
        includeMetadataChanges: Bool, listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        addSnapshotListener(
            options: SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges), listener: listener)
    }

    /// Listens to the document.
    /// - Parameters:
    ///   - options: the source, and whether the listener also runs when only the metadata changed.
    ///   - listener: runs on `FirestoreSettings.dispatchQueue` with each snapshot, or with an `NSError` of
    ///     `FirestoreErrorDomain`, which ends the listening. The first snapshot usually comes from the cache, also
    ///     offline, and another one from the server.
    /// - Returns: the registration. The listener runs until its `remove()` is called; it also runs when the
    ///   registration is released.
    @discardableResult
    public func addSnapshotListener(
        options: SnapshotListenOptions, listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        let carried = Carried(listener)
        return SnapshotListener.listen(firestore, to: documentQuery, options) { [self] result in
            switch result {
            case .success(let view): carried.value(snapshot(of: view), nil)
            case .failure(let status): carried.value(nil, status.nsError)
            }
        }
    }

    var documentQuery: ClientQuery { ClientQuery(path: key) }

    func snapshot(of view: ViewSnapshot) -> DocumentSnapshot {
        let document = view.documents.first
        return DocumentSnapshot(
            firestore: firestore, key: key, document: document,
            metadata: SnapshotMetadata(
                hasPendingWrites: document != nil && view.mutatedKeys.contains(key), isFromCache: view.isFromCache),
            readTime: view.readTime.timestamp)
    }
}

extension DocumentReference: Hashable, Codable, CustomStringConvertible {
    public static func == (left: DocumentReference, right: DocumentReference) -> Bool {
        left.firestore === right.firestore && left.key == right.key
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(key) }

    public func encode(to encoder: any Swift.Encoder) throws {
        throw FirestoreEncodingError.encodingIsNotSupported(
            "DocumentReference values can only be encoded with Firestore.Encoder.")
    }

    public var description: String { "DocumentReference(\(path))" }
}
