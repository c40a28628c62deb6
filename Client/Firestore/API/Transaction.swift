public import Foundation
internal import HearthConcurrency
internal import HearthModel
internal import HearthSync

/// One attempt of a transaction: reads first, then writes. Only for the closure that got it.
public final class Transaction {
    private let firestore: Firestore
    private let attempt: TransactionAttempt

    init(firestore: Firestore, attempt: TransactionAttempt) {
        self.firestore = firestore
        self.attempt = attempt
    }

    /// Reads at the server, past the cache. Blocks the calling thread.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: pass it on to the transaction's error pointer.
    @discardableResult
    public func getDocument(_ document: DocumentReference) throws -> DocumentSnapshot {
        orTrap { () throws(Status) in try requireOwn(document) }
        let attempt = attempt
        let key = document.key
        let result = Locked<Result<ClientDocument, Status>?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        firestore.tasks.run {
            let answer: Result<ClientDocument, Status>
            do throws(Status) {
                answer = .success(try await attempt.read(key))
            } catch {
                answer = .failure(error)
            }
            result.with { $0 = answer }
            isDone.signal()
        }
        isDone.wait()
        switch result.with({ $0 }) {
        case .success(let read)?:
            return DocumentSnapshot(
                firestore: firestore, key: key, document: read.isFound ? read : nil,
                metadata: SnapshotMetadata(hasPendingWrites: false, isFromCache: false))
        case .failure(let status)?: throw status.nsError
        case nil: throw Status.internalError("A transaction's read ended without result.").nsError
        }
    }

    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference) -> Transaction {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key) }
    }

    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference, merge: Bool) -> Transaction {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, merge: merge) }
    }

    @discardableResult
    public func setData(
        _ data: [String: Any], forDocument document: DocumentReference, mergeFields: [Any]
    ) -> Transaction {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, mergeFields: mergeFields) }
    }

    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> Transaction {
        setData(try encoder.encode(value), forDocument: document)
    }

    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, merge: Bool,
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> Transaction {
        setData(try encoder.encode(value), forDocument: document, merge: merge)
    }

    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, mergeFields: [Any],
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> Transaction {
        setData(try encoder.encode(value), forDocument: document, mergeFields: mergeFields)
    }

    @discardableResult
    public func updateData(_ fields: [AnyHashable: Any], forDocument document: DocumentReference) -> Transaction {
        add(document) { (builder) throws(Status) in try builder.update(fields, document.key) }
    }

    @discardableResult
    public func deleteDocument(_ document: DocumentReference) -> Transaction {
        add(document) { (_) throws(Status) in Mutation(key: document.key, kind: .delete) }
    }

    private func add(
        _ document: DocumentReference, _ mutation: (MutationBuilder) throws(Status) -> Mutation
    ) -> Transaction {
        orTrap { () throws(Status) in
            try requireOwn(document)
            try attempt.write(try mutation(MutationBuilder(firestore)))
        }
        return self
    }

    private func requireOwn(_ document: DocumentReference) throws(Status) {
        if document.firestore !== firestore {
            throw .invalidArgument("Provided document reference is from a different Firestore instance.")
        }
    }
}

/// How a transaction is run.
public final class TransactionOptions: NSObject, NSCopying {
    /// At least 1. Default 5.
    public var maxAttempts = TransactionRunner.attemptsDefault {
        didSet {
            orTrap { () throws(Status) in
                guard (1...Int(Int32.max)).contains(maxAttempts) else {
                    throw .invalidArgument(
                        "Invalid maxAttempts (\(maxAttempts)): expected 1 to \(Int32.max).")
                }
            }
        }
    }

    public override init() {}

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = TransactionOptions()
        copy.maxAttempts = maxAttempts
        return copy
    }

    public override func isEqual(_ object: Any?) -> Bool {
        (object as? TransactionOptions)?.maxAttempts == maxAttempts
    }

    public override var hash: Int { maxAttempts.hashValue }
}

extension Firestore {
    /// Reads documents and writes what depends on them, as if nobody else did anything meanwhile. Needs the network.
    /// - Parameters:
    ///   - updateBlock: runs off the caller's queue, and again when others changed what it read: at most
    ///     `TransactionOptions.maxAttempts` times. An error in its pointer ends the transaction.
    ///   - completion: hears what the last run of the block returned.
    public func runTransaction(
        _ updateBlock: @escaping (Transaction, NSErrorPointer) -> Any?,
        completion: @escaping (Any?, (any Error)?) -> Void
    ) {
        runTransaction(with: nil, block: updateBlock, completion: completion)
    }

    public func runTransaction(
        with options: TransactionOptions?, block updateBlock: @escaping (Transaction, NSErrorPointer) -> Any?,
        completion: @escaping (Any?, (any Error)?) -> Void
    ) {
        let runner = TransactionRunner(
            firestore: self, attemptsMax: options?.maxAttempts ?? TransactionRunner.attemptsDefault)
        let block = Carried(updateBlock)
        let done = Carried(completion)
        runner.start(block) { [self] result in
            deliver {
                switch result {
                case .success(let value): done.value(value.value, nil)
                case .failure(let error): done.value(nil, error)
                }
            }
        }
    }

    @discardableResult
    nonisolated(nonsending) public func runTransaction(
        _ updateBlock: @escaping (Transaction, NSErrorPointer) -> sending Any?
    ) async throws -> sending Any? {
        let runner = TransactionRunner(firestore: self, attemptsMax: TransactionRunner.attemptsDefault)
        let block = Carried<(Transaction, NSErrorPointer) -> Any?>(updateBlock)
        let result: Carried<Any?> = try await answer(stoppable: { runner.start(block, completion: $0) })
        return result.value
    }
}
