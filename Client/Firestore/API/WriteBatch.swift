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
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    /// - Returns: this batch, for further calls.
    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key) }
    }

    /// Creates or replaces a document, or merges data into it.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - merge: true retains all fields that `data` does not contain; false replaces the document.
    /// - Returns: this batch, for further calls.
    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference, merge: Bool) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, merge: merge) }
    }

    /// Writes only the given fields of a document.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in `data`.
    /// - Returns: this batch, for further calls.
    @discardableResult
    public func setData(
        _ data: [String: Any], forDocument document: DocumentReference, mergeFields: [Any]
    ) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, mergeFields: mergeFields) }
    }

    /// Creates or replaces a document with an encodable value.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    /// - Returns: this batch, for further calls.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> WriteBatch {
        setData(try encoder.encode(value), forDocument: document)
    }

    /// Merges an encodable value into a document, or replaces the document.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - merge: true retains all fields that the value does not contain; false replaces the document.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    /// - Returns: this batch, for further calls.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, merge: Bool,
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> WriteBatch {
        setData(try encoder.encode(value), forDocument: document, merge: merge)
    }

    /// Writes only the given fields of an encodable value.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in the encoded value.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    /// - Returns: this batch, for further calls.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, mergeFields: [Any],
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> WriteBatch {
        setData(try encoder.encode(value), forDocument: document, mergeFields: mergeFields)
    }

    /// Changes fields of a document that must exist.
    /// - Parameters:
    ///   - fields: the new values. The keys are field paths, as strings with dots or as `FieldPath`s.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    /// - Returns: this batch, for further calls.
    @discardableResult
    public func updateData(_ fields: [AnyHashable: Any], forDocument document: DocumentReference) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.update(fields, document.key) }
    }

    /// Deletes a document.
    /// - Parameter document: a document of the same `Firestore` instance; any other ends the program.
    /// - Returns: this batch, for further calls.
    @discardableResult
    public func deleteDocument(_ document: DocumentReference) -> WriteBatch {
        add(document) { (_) throws(Status) in Mutation(key: document.key, kind: .delete) }
    }

    /// Commits the batch: all of its writes or none. Its effects are visible to reads and listeners of this program at
    /// once, also offline. Afterwards the batch cannot be used; that ends the program.
    /// - Parameter completion: runs on `FirestoreSettings.dispatchQueue` after the server has answered: with nil when
    ///   it has committed the writes, otherwise with an `NSError` of `FirestoreErrorDomain` that has the server's code.
    ///   While the client is offline it waits; it receives `cancelled` when the instance is terminated. For an empty
    ///   batch it runs without a request.
    public func commit(completion: (((any Error)?) -> Void)? = nil) {
        let done = firestore.handler(completion)
        guard let mutations = orTrap(take) else { return done(nil) }
        firestore.engine.write(mutations, completion: done)
    }

    /// Commits the batch and waits until the server has committed it. The batch cannot be used afterwards.
    /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code, for example `permissionDenied`;
    ///   `cancelled` when the instance is terminated. `CancellationError` when the task is cancelled; the writes remain
    ///   queued.
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
