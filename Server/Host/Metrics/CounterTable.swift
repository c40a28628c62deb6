import Synchronization

/// A fixed number of counters, each changed by one thread and read by any: plain loads and stores, no locked
/// instruction. If two threads change one counter, counts are lost.
///
/// `@unchecked Sendable`: the pointer is set once, and all of the memory is atomic.
final class CounterTable: @unchecked Sendable {
    private let counters: UnsafeMutablePointer<Atomic<Int>>
    let count: Int

    init(count: Int) {
        self.count = count
        counters = .allocate(capacity: count)
        for index in 0..<count { (counters + index).initialize(to: Atomic(0)) }
    }

    deinit {
        counters.deinitialize(count: count)
        counters.deallocate()
    }

    func add(_ amount: Int, at index: Int) {
        precondition(index >= 0 && index < count)
        counters[index].store(counters[index].load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    subscript(index: Int) -> Int {
        precondition(index >= 0 && index < count)
        return counters[index].load(ordering: .relaxed)
    }
}
