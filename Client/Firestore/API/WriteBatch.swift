internal import Foundation
internal import HearthModel
internal import HearthSync

/// Writes that are committed atomically. It needs no network: the batch is queued, and its effects are visible locally
/// at once.
public final class WriteBatch {
    private let firestore: Firestore
    private(set) var mutations: [Mutation] = []
    private var isCommitted = false

    init(firestore: Firestore) { self.firestore = firestore }

    /// Creates or replaces a document.
    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key) }
    }

    /// Creates or replaces a document, or merges data into it.
    /// - Parameter merge: true retains all fields that `data` does not contain; false replaces the document.
    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference, merge: Bool) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, merge: merge) }
    }

    /// Writes only the given fields of a document.
    /// - Parameter mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in `data`.
    @discardableResult
    public func setData(
        _ data: [String: Any], forDocument document: DocumentReference, mergeFields: [Any]
    ) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, mergeFields: mergeFields) }
    }

    /// Creates or replaces a document with an encodable value.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> WriteBatch {
        setData(try encoder.encode(value), forDocument: document)
    }

    /// Merges an encodable value into a document, or replaces the document.
    /// - Parameter merge: true retains all fields that the value does not contain; false replaces the document.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, merge: Bool,
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> WriteBatch {
        setData(try encoder.encode(value), forDocument: document, merge: merge)
    }

    /// Writes only the given fields of an encodable value.
    /// - Parameter mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in the encoded
    ///   value.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, mergeFields: [Any],
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> WriteBatch {
        setData(try encoder.encode(value), forDocument: document, mergeFields: mergeFields)
    }

    /// Changes fields of a document that must exist.
    /// - Parameter fields: the new values. The keys are field paths, as strings with dots or as `FieldPath`s.
    @discardableResult
    public func updateData(_ fields: [AnyHashable: Any], forDocument document: DocumentReference) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.update(fields, document.key) }
    }

    /// Deletes a document.
    @discardableResult
    public func deleteDocument(_ document: DocumentReference) -> WriteBatch {
        add(document) { (_) throws(Status) in Mutation(key: document.key, kind: .delete) }
    }

    /// Commits the batch. The batch cannot be used afterwards.
    /// - Parameter completion: receives nil after the server has committed the writes, or an `NSError` of
    ///   `FirestoreErrorDomain`. For an empty batch it runs without a request.
    public func commit(completion: (((any Error)?) -> Void)? = nil) {
        let done = firestore.handler(completion)
        guard let mutations = orTrap(take) else { return done(nil) }
        firestore.engine.write(mutations, completion: done)
    }

    /// Commits the batch and waits until the server has committed it. The batch cannot be used afterwards.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code. `CancellationError` when the task is
    ///   cancelled; the writes remain queued.
    nonisolated(nonsending) public func commit() async throws {
        guard let mutations = orTrap(take) else { return }
        try await waiting { firestore.engine.write(mutations, completion: $0) }
    }

    private func add(
        _ document: DocumentReference, _ mutation: (MutationBuilder) throws(Status) -> Mutation
    ) -> WriteBatch {
        orTrap { () throws(Status) in try checkedAdd(document, mutation) }
        return self
    }

    func checkedAdd(
        _ document: DocumentReference, _ mutation: (MutationBuilder) throws(Status) -> Mutation
    ) throws(Status) {
        try requireOpen()
        if document.firestore !== firestore {
            throw .invalidArgument("Provided document reference is from a different Firestore instance.")
        }
        mutations.append(try mutation(MutationBuilder(firestore)))
    }

    /// nil when there is nothing to commit.
    func take() throws(Status) -> [Mutation]? {
        try requireOpen()
        isCommitted = true
        return mutations.isEmpty ? nil : mutations
    }

    private func requireOpen() throws(Status) {
        if isCommitted {
            throw .failedPrecondition("A write batch can no longer be used after commit has been called.")
        }
    }
}
