import Glibc
import Synchronization

/// Opened once, by any thread.
final class FuzzLatch: Sendable {
    private let isOpen = Atomic<Bool>(false)

    func open() { isOpen.store(true, ordering: .releasing) }

    func wait() { while !isOpen.load(ordering: .acquiring) { sched_yield() } }
}
