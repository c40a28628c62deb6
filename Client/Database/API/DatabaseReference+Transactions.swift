import Foundation
import HearthApp
import HearthConcurrency
import HearthModel
import HearthTree

extension DatabaseReference {
    /// The completion of a transaction. It runs once, on the database's `callbackQueue`.
    /// - `error`: nil when the transaction is committed or its function aborted, or else an `NSError` of the domain
    ///   `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted, 3 after `purgeOutstandingWrites`,
    ///   9999 for other reasons, which the description names: `set` after another write of this program at, above or
    ///   below the location, `maxretry` after 25 results that the server did not take, `disconnect` when the connection
    ///   was lost after the result was sent, so that the server may have made it.
    /// - `isCommitted`: whether the server has the function's result.
    /// - `snapshot`: the committed data; after an abort the data that the function received last; nil after an error.
    public typealias TransactionCompletion = (
        _ error: (any Error)?, _ isCommitted: Bool, _ snapshot: DataSnapshot?
    ) -> Void

    /// Changes the data at the location depending on its present value. The server takes the function's result only if
    /// its data is that which the function received; otherwise the function runs again. After 25 results that the
    /// server did not take the transaction fails with `maxretry`.
    ///
    /// Observers receive the result before the server has it. Offline the function runs with the known data, and the
    /// result waits until the client is online. Transactions are not stored on disk: those without an answer end with
    /// the program. Locations below `.info` end the program.
    /// - Parameter block: receives the best known data, which has no data where none is known, and returns the result.
    ///   It runs at once, and again when the data turns out to be different, on a queue of the library, for one
    ///   transaction after another. It must not wait for this database.
    @preconcurrency
    public func runTransactionBlock(_ block: @escaping @Sendable (MutableData) -> TransactionResult) {
        run(block, localEvents: true) { _ in }
    }

    /// Changes the data at the location depending on its present value, as `runTransactionBlock(_:)`.
    /// - Parameters:
    ///   - block: the function, as for `runTransactionBlock(_:)`.
    ///   - completionBlock: runs when the transaction has ended, offline only after the client is online again.
    @preconcurrency
    public func runTransactionBlock(
        _ block: @escaping @Sendable (MutableData) -> TransactionResult,
        andCompletionBlock completionBlock: @escaping TransactionCompletion
    ) { runTransactionBlock(block, andCompletionBlock: completionBlock, withLocalEvents: true) }

    /// Changes the data at the location depending on its present value, as `runTransactionBlock(_:)`.
    /// - Parameters:
    ///   - block: the function, as for `runTransactionBlock(_:)`.
    ///   - completionBlock: nil, or runs when the transaction has ended, offline only after the client is online again.
    ///   - localEvents: whether observers receive the function's result before the server has committed it. With false
    ///     they receive nothing of the transaction until then, also offline.
    @preconcurrency
    public func runTransactionBlock(
        _ block: @escaping @Sendable (MutableData) -> TransactionResult,
        andCompletionBlock completionBlock: TransactionCompletion?, withLocalEvents localEvents: Bool
    ) {
        guard let completionBlock else { return run(block, localEvents: localEvents) { _ in } }
        let carried = Carried(completionBlock)
        run(block, localEvents: localEvents) { [repository] end in
            repository.deliver {
                switch end {
                case .success(let (isCommitted, snapshot)): carried.value(nil, isCommitted, snapshot)
                case .failure(let error): carried.value(error, false, nil)
                }
            }
        }
    }

    /// Changes the data at the location depending on its present value, as `runTransactionBlock(_:)`, and waits for the
    /// end. An abort by the function is not an error.
    /// - Parameter block: the function, as for `runTransactionBlock(_:)`.
    /// - Returns: whether the transaction is committed, and the committed data, or else the data that the function
    ///   received last.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny the write, 2 when the app is deleted,
    ///   3 after `purgeOutstandingWrites`, 9999 for other reasons (see `TransactionCompletion`). `CancellationError`
    ///   when the task is cancelled; a transaction that was begun continues.
    @preconcurrency
    @discardableResult
    nonisolated(nonsending) public func runTransactionBlock(
        _ block: @escaping @Sendable (MutableData) -> TransactionResult
    ) async throws -> (Bool, DataSnapshot) {
        try await answer { run(block, localEvents: true, completion: $0) }
    }

    private func run(
        _ block: @escaping @Sendable (MutableData) -> TransactionResult, localEvents: Bool,
        completion: @escaping @Sendable (Result<(Bool, DataSnapshot), any Error>) -> Void
    ) {
        let (database, path) = base
        orTrap { () throws(Status) in try Paths.checkWritable(path, "runTransactionBlock") }
        let fail: @Sendable (WireFailure) -> Void = { completion(.failure($0.error)) }
        repository.perform(
            { engine in
                engine.runTransaction(
                    at: path, localEvents: localEvents,
                    update: { node in block(MutableData(node, at: path)).node },
                    completion: { outcome in
                        switch outcome {
                        case .committed(let node):
                            completion(.success((true, DataSnapshot(node, at: path, of: database))))
                        case .aborted(let node):
                            completion(.success((false, DataSnapshot(node, at: path, of: database))))
                        case .failed(let failure): fail(failure)
                        }
                    })
            }, otherwise: fail)
    }
}
