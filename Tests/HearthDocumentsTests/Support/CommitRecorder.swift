@testable import HearthDocuments
import Synchronization

/// Receives every commit of a database through its hub, as a listener does that watches everything.
final class CommitRecorder: ChangeReceiver {
    private let body: @Sendable (ChangeSet) -> Void

    init(_ body: @escaping @Sendable (ChangeSet) -> Void) { self.body = body }

    func receive(_ event: ChangeEvent) {
        if case .committed(let set, _) = event { body(set) }
    }
}

extension Database {
    /// Calls `body` for every later commit, in order, on the writer's thread, for as long as the database is open.
    func observe(_ body: @escaping @Sendable (ChangeSet) -> Void) {
        precondition(changes.add([.everything], for: CommitRecorder(body)), "the database is closed")
    }
}
