internal import Foundation
internal import HearthModel
internal import HearthSync

/// Writes that happen together or not at all. Needs no network: it is kept, and its effects show at once.
public final class WriteBatch {
    private let firestore: Firestore
    private(set) var mutations: [Mutation] = []
    private var isCommitted = false

    init(firestore: Firestore) { self.firestore = firestore }

    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key) }
    }

    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference, merge: Bool) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, merge: merge) }
    }

    @discardableResult
    public func setData(
        _ data: [String: Any], forDocument document: DocumentReference, mergeFields: [Any]
    ) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, mergeFields: mergeFields) }
    }

    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> WriteBatch {
        setData(try encoder.encode(value), forDocument: document)
    }

    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, merge: Bool,
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> WriteBatch {
        setData(try encoder.encode(value), forDocument: document, merge: merge)
    }

    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, mergeFields: [Any],
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> WriteBatch {
        setData(try encoder.encode(value), forDocument: document, mergeFields: mergeFields)
    }

    @discardableResult
    public func updateData(_ fields: [AnyHashable: Any], forDocument document: DocumentReference) -> WriteBatch {
        add(document) { (builder) throws(Status) in try builder.update(fields, document.key) }
    }

    @discardableResult
    public func deleteDocument(_ document: DocumentReference) -> WriteBatch {
        add(document) { (_) throws(Status) in Mutation(key: document.key, kind: .delete) }
    }

    /// - Parameter completion: called with the server's answer; at once for an empty batch.
    public func commit(completion: (((any Error)?) -> Void)? = nil) {
        let done = firestore.handler(completion)
        guard let mutations = orTrap(take) else { return done(nil) }
        firestore.engine.write(mutations, completion: done)
    }

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
