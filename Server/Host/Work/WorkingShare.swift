import HearthModel
import Synchronization

/// A part of the memory in use; returned when the object is freed, or earlier.
package final class WorkingShare: Sendable {
    private let memory: any WorkingPart
    private let requester: Requester
    private let rest: Atomic<Int>

    init(_ memory: any WorkingPart, _ bytes: Int, _ requester: Requester) {
        self.memory = memory
        self.requester = requester
        rest = Atomic(bytes)
    }

    deinit { end() }

    /// What is not returned yet.
    var bytes: Int { rest.load(ordering: .relaxed) }

    package func end() {
        let freed = rest.exchange(0, ordering: .relaxed)
        if freed > 0 { memory.release(freed, of: requester) }
    }
}
