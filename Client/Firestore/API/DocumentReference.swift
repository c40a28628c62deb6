internal import Foundation
internal import HearthModel
internal import HearthSync

/// A document's place, whether there is a document or not.
public final class DocumentReference: Sendable {
    public let firestore: Firestore
    let key: ResourcePath

    init(firestore: Firestore, key: ResourcePath) {
        self.firestore = firestore
        self.key = key
    }

    /// References are decoded by `Firestore.Decoder` only.
    public init(from decoder: any Swift.Decoder) throws {
        throw FirestoreDecodingError.decodingIsNotSupported(
            "DocumentReference values can only be decoded with Firestore.Decoder.")
    }

    public var documentID: String { key.segments[key.segments.count - 1] }

    public var path: String { key.string }

    public var parent: CollectionReference { CollectionReference(firestore: firestore, path: key.parent) }

    /// - Parameter collectionPath: an odd number of segments, mostly an id.
    @discardableResult
    public func collection(_ collectionPath: String) -> CollectionReference {
        orTrap { () throws(Status) in
            CollectionReference(firestore: firestore, path: try Paths.collection(collectionPath, below: key))
        }
    }

    // MARK: Writing

    /// Replaces the document.
    public func setData(_ data: [String: Any], completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in try MutationBuilder(firestore).set(data, key) }
    }

    nonisolated(nonsending) public func setData(_ data: [String: Any]) async throws {
        try await write { () throws(Status) in try MutationBuilder(firestore).set(data, key) }
    }

    /// - Parameter merge: keeps the fields that the data doesn't name.
    public func setData(_ data: [String: Any], merge: Bool, completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in try MutationBuilder(firestore).set(data, key, merge: merge) }
    }

    nonisolated(nonsending) public func setData(_ data: [String: Any], merge: Bool) async throws {
        try await write { () throws(Status) in try MutationBuilder(firestore).set(data, key, merge: merge) }
    }

    /// - Parameter mergeFields: dotted texts or `FieldPath`s: only these are written; each must occur in the data.
    public func setData(_ data: [String: Any], mergeFields: [Any], completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in try MutationBuilder(firestore).set(data, key, mergeFields: mergeFields)
        }
    }

    nonisolated(nonsending) public func setData(_ data: [String: Any], mergeFields: [Any]) async throws {
        try await write { () throws(Status) in try MutationBuilder(firestore).set(data, key, mergeFields: mergeFields) }
    }

    public func setData<T: Encodable>(
        from value: T, encoder: Firestore.Encoder = Firestore.Encoder(), completion: (((any Error)?) -> Void)? = nil
    ) throws {
        setData(try encoder.encode(value), completion: completion)
    }

    public func setData<T: Encodable>(
        from value: T, merge: Bool, encoder: Firestore.Encoder = Firestore.Encoder(),
        completion: (((any Error)?) -> Void)? = nil
    ) throws {
        setData(try encoder.encode(value), merge: merge, completion: completion)
    }

    public func setData<T: Encodable>(
        from value: T, mergeFields: [Any], encoder: Firestore.Encoder = Firestore.Encoder(),
        completion: (((any Error)?) -> Void)? = nil
    ) throws {
        setData(try encoder.encode(value), mergeFields: mergeFields, completion: completion)
    }

    /// Changes fields of a document that must exist.
    /// - Parameter fields: the keys are dotted texts or `FieldPath`s.
    public func updateData(_ fields: [AnyHashable: Any], completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in try MutationBuilder(firestore).update(fields, key) }
    }

    nonisolated(nonsending) public func updateData(_ fields: [AnyHashable: Any]) async throws {
        try await write { () throws(Status) in try MutationBuilder(firestore).update(fields, key) }
    }

    public func delete(completion: (((any Error)?) -> Void)? = nil) {
        write(completion) { () throws(Status) in Mutation(key: key, kind: .delete) }
    }

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

    public func getDocument(completion: @escaping (DocumentSnapshot?, (any Error)?) -> Void) {
        getDocument(source: .default, completion: completion)
    }

    @discardableResult
    nonisolated(nonsending) public func getDocument() async throws -> DocumentSnapshot {
        try await getDocument(source: .default)
    }

    public func getDocument(
        source: FirestoreSource, completion: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) {
        OneTimeRead.document(self, source, firestore.handler(completion))
    }

    @discardableResult
    nonisolated(nonsending) public func getDocument(source: FirestoreSource) async throws -> DocumentSnapshot {
        try await waiting(stoppable: { OneTimeRead.document(self, source, $0) })
    }

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

    @discardableResult
    nonisolated(nonsending) public func getDocument<T: Decodable>(
        as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
        decoder: Firestore.Decoder = Firestore.Decoder(), source: FirestoreSource = .default
    ) async throws -> T {
        try await getDocument(source: source).data(as: type, with: serverTimestampBehavior, decoder: decoder)
    }

    // MARK: Listening

    @discardableResult
    public func addSnapshotListener(
        _ listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        addSnapshotListener(options: SnapshotListenOptions(), listener: listener)
    }

    @discardableResult
    public func addSnapshotListener(
        includeMetadataChanges: Bool, listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration & Sendable {
        addSnapshotListener(
            options: SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges), listener: listener)
    }

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
                hasPendingWrites: document != nil && view.mutatedKeys.contains(key), isFromCache: view.isFromCache))
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
