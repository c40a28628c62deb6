import Foundation
import HearthApp
import HearthConcurrency
import HearthModel
import HearthTree

extension DatabaseReference {
    /// The completion of a write. It runs once, on the database's `callbackQueue`.
    /// - `error`: nil when the server has made the write, or else an `NSError` of the domain `com.firebase`, whose
    ///   codes `Database` lists. When the app is deleted, it is 2, and a write on disk is sent when the database is
    ///   used again.
    /// - `reference`: the reference that the write was called on.
    public typealias Completion = (_ error: (any Error)?, _ reference: DatabaseReference) -> Void

    /// Checks a write and runs it; the completion runs on the user's queue.
    func run(_ completion: Completion?, _ change: (TreePath) throws(Status) -> Change) {
        guard let completion else { return run(change) { _ in } }
        let carried = Carried(completion)
        run(change) { [self, repository] failure in
            repository.deliver { carried.value(failure?.error, self) }
        }
    }

    /// The same for `async` calls, which do not use the user's queue.
    nonisolated(nonsending) func running(_ change: (TreePath) throws(Status) -> Change) async throws
        -> DatabaseReference
    {
        try await answer { completion in
            run(change) { [self] failure in completion(failure.map { .failure($0.error) } ?? .success(self)) }
        }
    }

    private func run(
        _ change: (TreePath) throws(Status) -> Change, completion: @escaping @Sendable (WireFailure?) -> Void
    ) {
        let path = base.path
        let change = orTrap { () throws(Status) in try change(path) }
        repository.perform(change, at: path, completion: completion)
    }
}
