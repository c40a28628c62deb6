import Synchronization

/// A part of the memory in use; returned when the object is freed, or earlier.
package final class WorkingShare: Sendable {
    private let memory: WorkingMemory
    private let bytes: Atomic<Int>

    init(_ memory: WorkingMemory, _ bytes: Int) {
        self.memory = memory
        self.bytes = Atomic(bytes)
    }

    deinit { end() }

    package func end() {
        let freed = bytes.exchange(0, ordering: .relaxed)
        if freed > 0 { memory.release(freed) }
    }
}
