import HearthModel
import Synchronization

/// Whether a call is still wanted.
final class Cancellation: Sendable {
    private let flag = Atomic<Bool>(false)

    var isCancelled: Bool { flag.load(ordering: .relaxed) }

    /// For work that is queued: whether somebody still waits for it.
    var isWanted: @Sendable () -> Bool { { [self] in !isCancelled } }

    func cancel() { flag.store(true, ordering: .relaxed) }

    /// - Throws: CANCELLED when nobody waits any more.
    func check() throws(Status) {
        if isCancelled { throw Status(.cancelled, "The client has cancelled the call.") }
    }
}
