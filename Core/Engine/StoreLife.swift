import HearthModel
import Synchronization

/// Whether a store is open; checked by its snapshots and cursors.
final class StoreLife: Sendable {
    private let ended = Atomic(false)
    private let reason = Mutex(Status.unavailable("The database is closed."))

    var isOpen: Bool { !ended.load(ordering: .acquiring) }

    func end() { ended.store(true, ordering: .releasing) }

    func end(_ reason: Status) {
        self.reason.withLock { if isOpen { $0 = reason } }
        end()
    }

    @inline(__always)
    func check() throws(Status) {
        if !isOpen { throw reason.withLock { $0 } }
    }
}
