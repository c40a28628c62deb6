internal import Foundation
internal import HearthConcurrency
internal import HearthModel
internal import HearthSync

/// Runs a transaction's closure until its commit succeeds or fails permanently.
struct TransactionRunner: Sendable {
    typealias Block = @Sendable (Transaction, NSErrorPointer) -> Any?

    static let attemptsDefault = 5
    /// No attempt starts later than this after the first, whatever the number of attempts: a server that accepts and never
    /// answers holds each call until its timeout (`GRPCDatastore`).
    static let secondsMax = 60.0

    let firestore: Firestore
    let attemptsMax: Int
    /// Waits some seconds; tests only count. It ends when the task is cancelled.
    var sleep: @Sendable (Double) async -> Void = { seconds in
        try? await Task.sleep(nanoseconds: UInt64(seconds * 1_000_000_000))
    }
    /// Never decreases; tests set it.
    var nowSeconds: @Sendable () -> Double = { Double(SystemClock().monotonicNanoseconds()) / 1e9 }

    /// Starts the transaction in a task of the instance.
    /// - Returns: a closure that ends it early. No further attempt starts; a commit in progress may or may not be
    ///   applied.
    @discardableResult
    func start(
        _ block: @escaping Block,
        completion: @escaping @Sendable (Result<Carried<Any?>, any Error>) -> Void
    ) -> @Sendable () -> Void {
        // Read here, where a terminated instance is the caller's error; the task may start after the end.
        let engine = firestore.engine
        return firestore.tasks.run { completion(await run(block, engine)) }
    }

    func run(
        _ block: @escaping Block, _ engine: any FirestoreEngine
    ) async -> Result<Carried<Any?>, any Error> {
        if let failure = engine.startFailure { return .failure(failure.nsError) }
        var backoff = Backoff(.firestore)
        var attemptsLeft = attemptsMax
        let endSeconds = nowSeconds() + Self.secondsMax
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
                // An error of the user's code ends the transaction. An error of this library, from a read, may allow a
                // retry.
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
            guard attemptsLeft > 0, Self.isWorthRetrying(failure.code), nowSeconds() < endSeconds else {
                return .failure(userError ?? failure.nsError)
            }
            if failure.code == .resourceExhausted { backoff.growToMax() }
        }
    }

    /// Runs on a thread that may block, because reads inside the closure block.
    private func call(
        _ block: @escaping Block, _ attempt: TransactionAttempt
    ) async -> (Carried<Any?>, NSError?) {
        await withCheckedContinuation { continuation in
            DispatchQueue.global(qos: .userInitiated).async { [firestore] in
                var error: NSError?
                let value = withUnsafeMutablePointer(to: &error) { pointer in
                    block(Transaction(firestore: firestore, attempt: attempt), pointer)
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
