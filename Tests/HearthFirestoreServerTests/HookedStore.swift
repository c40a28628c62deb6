import HearthEngine
import HearthModel
import Synchronization

/// A store in memory that does something before a long snapshot is taken.
final class HookedStore: Store {
    private let inner = MemoryStore()
    private let hook = Mutex<(@Sendable (_ number: Int) -> Void)?>(nil)
    /// Snapshots that were taken for long reads.
    let longSnapshots = Atomic(0)

    /// - Parameter hook: gets the number of the snapshot, from 1.
    func beforeLongSnapshots(_ hook: @escaping @Sendable (_ number: Int) -> Void) {
        self.hook.withLock { $0 = hook }
    }

    func snapshot() throws(Status) -> any Snapshot { try inner.snapshot() }

    func snapshot(_ use: SnapshotUse) throws(Status) -> any Snapshot {
        if case .long = use {
            let number = longSnapshots.add(1, ordering: .relaxed).newValue
            hook.withLock { $0 }?(number)
        }
        return try inner.snapshot(use)
    }

    func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        try inner.write(body)
    }

    func maintain() { inner.maintain() }
    func close() { inner.close() }
}
