internal import Foundation
internal import HearthConcurrency
internal import HearthModel
internal import HearthSync

/// Runs a transaction's closure until its commit succeeds, or an error says that it never will.
struct TransactionRunner: Sendable {
    static let attemptsDefault = 5

    let firestore: Firestore
    let attemptsMax: Int
    /// Waits some seconds: tests count instead. Ends when the task is cancelled.
    var sleep: @Sendable (Double) async -> Void = { seconds in
        try? await Task.sleep(nanoseconds: UInt64(seconds * 1_000_000_000))
    }

    /// Begins the transaction in a task of the instance.
    /// - Returns: ends it early: no attempt is begun any more, and that which is being committed may be made or not.
    @discardableResult
    func start(
        _ block: Carried<(Transaction, NSErrorPointer) -> Any?>,
        completion: @escaping @Sendable (Result<Carried<Any?>, any Error>) -> Void
    ) -> @Sendable () -> Void {
        // Here, where its absence is the caller's mistake; not in a task, which may begin after the end.
        let engine = firestore.engine
        return firestore.tasks.run { completion(await run(block, engine)) }
    }

    func run(
        _ block: Carried<(Transaction, NSErrorPointer) -> Any?>, _ engine: any FirestoreEngine
    ) async -> Result<Carried<Any?>, any Error> {
        var backoff = Backoff(.firestore)
        var attemptsLeft = attemptsMax
        while true {
            let seconds = backoff.next(random: .random(in: 0...1)) / 1_000
            if seconds > 0 { await sleep(seconds) }
            if Task.isCancelled { return .failure(Self.cancelled.nsError) }
            attemptsLeft -= 1
            let attempt = TransactionAttempt(engine: engine)
            let (value, userError) = await call(block, attempt)
            let failure: Status
            if let userError {
                attempt.close()
                // An error of the closure's own ends the transaction; one of ours, from a read, is judged like ours.
                guard let status = Status(firestoreError: userError) else { return .failure(userError) }
                failure = status
            } else {
                do {
                    try await attempt.commit()
                    return .success(value)
                } catch {
                    failure = error
                }
            }
            guard attemptsLeft > 0, Self.isWorthRetrying(failure.code) else {
                return .failure(userError ?? failure.nsError)
            }
            if failure.code == .resourceExhausted { backoff.growToMax() }
        }
    }

    /// On a thread that may block: reads inside the closure do.
    private func call(
        _ block: Carried<(Transaction, NSErrorPointer) -> Any?>, _ attempt: TransactionAttempt
    ) async -> (Carried<Any?>, NSError?) {
        await withCheckedContinuation { continuation in
            DispatchQueue.global(qos: .userInitiated).async { [firestore] in
                var error: NSError?
                let value = withUnsafeMutablePointer(to: &error) { pointer in
                    block.value(Transaction(firestore: firestore, attempt: attempt), pointer)
                }
                continuation.resume(returning: (Carried(value), error))
            }
        }
    }

    private static let cancelled = Status(
        .cancelled, "The transaction was cancelled, or its client terminated, before it was committed.")

    static func isWorthRetrying(_ code: Status.Code) -> Bool {
        switch code {
        case .aborted, .alreadyExists, .failedPrecondition: true
        case .cancelled, .unknown, .deadlineExceeded, .resourceExhausted, .internal, .unavailable, .unauthenticated:
            true
        case .ok, .invalidArgument, .notFound, .permissionDenied, .outOfRange, .unimplemented, .dataLoss: false
        }
    }
}
