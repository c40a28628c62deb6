import Foundation
import HearthApp
import HearthConcurrency
import HearthModel
import HearthTree

extension DatabaseReference {
    /// The result of a transaction: an error, whether the transaction is committed, and the data.
    public typealias TransactionCompletion = (
        _ error: (any Error)?, _ isCommitted: Bool, _ snapshot: DataSnapshot?
    ) -> Void

    /// Changes data depending on its present value. The function receives the best known data, which may be empty
    /// at first. It runs again whenever the server's data differs.
    /// - Parameter block: runs on a queue of the library, for one transaction after another.
    public func runTransactionBlock(_ block: @escaping (MutableData) -> TransactionResult) {
        run(block, localEvents: true) { _ in }
    }

    public func runTransactionBlock(
        _ block: @escaping (MutableData) -> TransactionResult,
        andCompletionBlock completionBlock: @escaping TransactionCompletion
    ) { runTransactionBlock(block, andCompletionBlock: completionBlock, withLocalEvents: true) }

    /// - Parameter localEvents: whether observers receive the function's result before the server has committed it.
    public func runTransactionBlock(
        _ block: @escaping (MutableData) -> TransactionResult,
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

    /// - Returns: whether the transaction is committed, and the data. An abort by the function is not an error.
    @discardableResult
    nonisolated(nonsending) public func runTransactionBlock(
        _ block: @escaping (MutableData) -> TransactionResult
    ) async throws -> (Bool, DataSnapshot) {
        try await answer { run(block, localEvents: true, completion: $0) }
    }

    private func run(
        _ block: @escaping (MutableData) -> TransactionResult, localEvents: Bool,
        completion: @escaping @Sendable (Result<(Bool, DataSnapshot), any Error>) -> Void
    ) {
        let (database, path) = base
        orTrap { () throws(Status) in try Paths.checkWritable(path, "runTransactionBlock") }
        let carried = Carried(block)
        let fail: @Sendable (WireFailure) -> Void = { completion(.failure($0.error)) }
        repository.perform(
            { engine in
                engine.runTransaction(
                    at: path, localEvents: localEvents,
                    update: { node in carried.value(MutableData(node, at: path)).node },
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
