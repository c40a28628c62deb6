internal import Foundation
internal import HearthConcurrency
internal import HearthModel
internal import HearthSync

/// One attempt of a transaction: first reads, then writes. Use it only in the closure that receives it.
public final class Transaction {
    private let firestore: Firestore
    private let attempt: TransactionAttempt

    init(firestore: Firestore, attempt: TransactionAttempt) {
        self.firestore = firestore
        self.attempt = attempt
    }

    /// Reads a document at the server and bypasses the cache. It blocks the calling thread.
    /// - Parameter document: a document of the same `Firestore` instance; any other ends the program.
    /// - Returns: the document's state; `exists` is false when there is no document.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: assign it to the transaction's error pointer. `unavailable`
    ///   when the server cannot be reached, `invalidArgument` after a write of the same attempt, `aborted` when the
    ///   document changed between two reads, otherwise the server's code.
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

    /// Creates or replaces a document.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    /// - Returns: this transaction, for further calls.
    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference) -> Transaction {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key) }
    }

    /// Creates or replaces a document, or merges data into it.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - merge: true retains all fields that `data` does not contain; false replaces the document.
    /// - Returns: this transaction, for further calls.
    @discardableResult
    public func setData(_ data: [String: Any], forDocument document: DocumentReference, merge: Bool) -> Transaction {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, merge: merge) }
    }

    /// Writes only the given fields of a document.
    /// - Parameters:
    ///   - data: the fields: names and values. A document has at most 1 MiB (1,048,576 bytes), with maps and arrays in
    ///     at most 20 levels.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in `data`.
    /// - Returns: this transaction, for further calls.
    @discardableResult
    public func setData(
        _ data: [String: Any], forDocument document: DocumentReference, mergeFields: [Any]
    ) -> Transaction {
        add(document) { (builder) throws(Status) in try builder.set(data, document.key, mergeFields: mergeFields) }
    }

    /// Creates or replaces a document with an encodable value.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    /// - Returns: this transaction, for further calls.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> Transaction {
        setData(try encoder.encode(value), forDocument: document)
    }

    /// Merges an encodable value into a document, or replaces the document.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - merge: true retains all fields that the value does not contain; false replaces the document.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    /// - Returns: this transaction, for further calls.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, merge: Bool,
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> Transaction {
        setData(try encoder.encode(value), forDocument: document, merge: merge)
    }

    /// Writes only the given fields of an encodable value.
    /// - Parameters:
    ///   - value: a value that is encoded as an object, such as a struct.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    ///   - mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in the encoded value.
    ///   - encoder: encodes `value`: its strategies determine the form of dates, data and keys.
    /// - Returns: this transaction, for further calls.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object.
    @discardableResult
    public func setData<T: Encodable>(
        from value: T, forDocument document: DocumentReference, mergeFields: [Any],
        encoder: Firestore.Encoder = Firestore.Encoder()
    ) throws -> Transaction {
        setData(try encoder.encode(value), forDocument: document, mergeFields: mergeFields)
    }

    /// Changes fields of a document that must exist.
    /// - Parameters:
    ///   - fields: the new values. The keys are field paths, as strings with dots or as `FieldPath`s.
    ///   - document: a document of the same `Firestore` instance; any other ends the program.
    /// - Returns: this transaction, for further calls.
    @discardableResult
    public func updateData(_ fields: [AnyHashable: Any], forDocument document: DocumentReference) -> Transaction {
        add(document) { (builder) throws(Status) in try builder.update(fields, document.key) }
    }

    /// Deletes a document.
    /// - Parameter document: a document of the same `Firestore` instance; any other ends the program.
    /// - Returns: this transaction, for further calls.
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

// `@preconcurrency` and `@Sendable`: a closure in a class of the main actor would otherwise belong to the main actor, and
// run elsewhere. The compiler warns of it; code for Apple platforms compiles in Swift 5 and 6.
extension Firestore {
    /// Runs a transaction: reads documents and writes results that depend on them, isolated from other writes. It needs
    /// the network.
    /// - Parameters:
    ///   - updateBlock: runs on a background thread. It runs again when a document that it read has changed, at most 5
    ///     times. An error in its error pointer ends the transaction, unless the error comes from a read that may
    ///     succeed on retry.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` with the return value of the last run, or with the
    ///     error: that of the block, or an `NSError` of `FirestoreErrorDomain`, for example `aborted` after the last
    ///     attempt, or `unavailable` when the server cannot be reached.
    @preconcurrency
    public func runTransaction(
        _ updateBlock: @escaping @Sendable (Transaction, NSErrorPointer) -> Any?,
        completion: @escaping (Any?, (any Error)?) -> Void
    ) {
        runTransaction(with: nil, block: updateBlock, completion: completion)
    }

    /// Runs a transaction with options.
    /// - Parameters:
    ///   - options: nil for the default options.
    ///   - updateBlock: runs on a background thread. It runs again when a document that it read has changed, at most
    ///     `TransactionOptions.maxAttempts` times.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` with the return value of the last run, or with the
    ///     error: that of the block, or an `NSError` of `FirestoreErrorDomain`, for example `aborted` after the last
    ///     attempt, or `unavailable` when the server cannot be reached.
    @preconcurrency
    public func runTransaction(
        with options: TransactionOptions?, block updateBlock: @escaping @Sendable (Transaction, NSErrorPointer) -> Any?,
        completion: @escaping (Any?, (any Error)?) -> Void
    ) {
        let runner = TransactionRunner(
            firestore: self, attemptsMax: options?.maxAttempts ?? TransactionRunner.attemptsDefault)
        let done = Carried(completion)
        runner.start(updateBlock) { [self] result in
            deliver {
                switch result {
                case .success(let value): done.value(value.value, nil)
                case .failure(let error): done.value(nil, error)
                }
            }
        }
    }

    /// Runs a transaction and returns the result of the last run of the block.
    /// - Parameter updateBlock: runs on a background thread. It runs again when a document that it read has changed, at
    ///   most 5 times.
    /// - Returns: the return value of the last run of the block.
    /// - Throws: the error of the block; an `NSError` of `FirestoreErrorDomain`, for example `aborted` after the last
    ///   attempt, or `unavailable` when the server cannot be reached; `CancellationError` when the task is cancelled:
    ///   no further attempt starts, and a commit that is under way may be made.
    @preconcurrency
    @discardableResult
    nonisolated(nonsending) public func runTransaction(
        _ updateBlock: @escaping @Sendable (Transaction, NSErrorPointer) -> sending Any?
    ) async throws -> sending Any? {
        let runner = TransactionRunner(firestore: self, attemptsMax: TransactionRunner.attemptsDefault)
        let result: Carried<Any?> = try await answer(stoppable: { runner.start(updateBlock, completion: $0) })
        return result.value
    }
}
