import Dispatch
import Glibc
import HearthModel
import HearthEngine
import Synchronization

/// An in-memory store whose transactions fail when a test requests it, and wait while a test blocks them.
package final class FaultyStore: Store {
    private struct Plan {
        /// Operations of the writer until one fails; nil for never.
        var countdown: Int?
        var status = Status.unavailable("The disk is full.")
        var operations = 0
        /// Transactions of the writer that cannot begin.
        var refusals = 0
    }

    private let inner: MemoryStore
    private let plan = Mutex(Plan())
    private let gate = DispatchSemaphore(value: 1)
    private let isUnreadable = Atomic(false)
    private let waiting = Atomic(0)
    private let refused = Atomic(0)

    package init(_ inner: MemoryStore = MemoryStore()) {
        self.inner = inner
    }

    /// Makes the writer's operation number `operation` from now on fail, counted from 0; its commit counts as one.
    package func fail(at operation: Int?, with status: Status = .unavailable("The disk is full.")) {
        plan.withLock { $0 = Plan(countdown: operation, status: status) }
    }

    /// What `takeDelay` gives once.
    package let delayMicroseconds = Atomic(0)

    package func takeDelay() -> Int { delayMicroseconds.exchange(0, ordering: .acquiringAndReleasing) }

    /// Records that one transaction has put or deleted at most.
    package let changesMax = Atomic(0)

    /// Makes this many of the writer's transactions fail before they begin, from now on.
    package func refuse(transactions: Int) { plan.withLock { $0.refusals = transactions } }

    /// Transactions that `refuse` has made fail, in total.
    package var refusedTransactions: Int { refused.load(ordering: .relaxed) }

    /// Operations since `fail` was called last.
    package var operations: Int { plan.withLock { $0.operations } }

    package func setUnreadable(_ value: Bool) { isUnreadable.store(value, ordering: .relaxed) }

    /// Blocks the writer's transactions until `release`.
    package func hold() { gate.wait() }
    package func release() { gate.signal() }

    /// Waits until the writer has reached the gate: commits that are submitted now belong to another group.
    package func waitForWriter() { while waiting.load(ordering: .acquiring) == 0 { sched_yield() } }

    fileprivate func step() throws(Status) {
        let status: Status? = plan.withLock { plan in
            plan.operations += 1
            guard let countdown = plan.countdown else { return nil }
            plan.countdown = countdown == 0 ? nil : countdown - 1
            return countdown == 0 ? plan.status : nil
        }
        if let status { throw status }
    }

    package func snapshot() throws(Status) -> any Snapshot {
        if isUnreadable.load(ordering: .relaxed) { throw .resourceExhausted("Too many readers.") }
        return try inner.snapshot()
    }

    package func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        waiting.add(1, ordering: .releasing)
        gate.wait()
        waiting.subtract(1, ordering: .releasing)
        defer { gate.signal() }
        let refusal: Status? = plan.withLock { plan in
            if plan.refusals == 0 { return nil }
            plan.refusals -= 1
            return plan.status
        }
        if let refusal {
            refused.add(1, ordering: .relaxed)
            throw refusal
        }
        return try inner.write { transaction throws(Status) in
            let shown = FaultyTransaction(transaction, self)
            let result = try body(shown)
            changesMax.max(shown.changes, ordering: .relaxed)
            try step()
            return result
        }
    }

    package func maintain() {}
    package func close() { inner.close() }
}

private final class FaultyTransaction: StoreTransaction {
    private let inner: any StoreTransaction
    private let store: FaultyStore
    private(set) var changes = 0

    init(_ inner: any StoreTransaction, _ store: FaultyStore) {
        self.inner = inner
        self.store = store
    }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        try store.step()
        return try inner.get(keyspace, key)
    }

    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        try store.step()
        return try inner.scan(keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try store.step()
        return try inner.count(keyspace, range, limit: limit)
    }

    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        try store.step()
        changes += 1
        try inner.put(keyspace, key, value)
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) {
        try store.step()
        changes += 1
        try inner.delete(keyspace, key)
    }

    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        try store.step()
        let count = try inner.delete(keyspace, range, limit: limit)
        changes += count
        return count
    }

    func close() { inner.close() }
}
