import HearthConcurrency
import HearthModel
import Synchronization

/// The store of a database that does not exist yet: empty and in memory, until the first write that must be kept makes
/// the permanent store.
///
/// So reading, listening and beginning a transaction neither make nor open a file, and readers see the first write like
/// any other. Invariants:
///
/// - A write is durable, or leaves the store unchanged, as the contract requires; only a write for which
///   `isWorthKeeping` returns false (definitions that come from configuration) stays in memory and is lost when the
///   store is closed. It is stored with the first write that must be kept.
/// - The permanent store is made at most once, by the write that needs it, after that write has succeeded in memory.
package final class DeferredStore: Store, @unchecked Sendable {
    // Held while a thread writes, makes the permanent store, or closes; guards `unused`.
    private let writer = Monitor()
    // Guards `memory`, `made` and `isClosed`, for moments: a snapshot never waits for a write, not even for the one
    // within which it is taken. `made` no longer changes once `stage` is set accordingly.
    private let monitor = Monitor()
    private var memory = MemoryStore()
    private var isClosed = false
    private var made: (any Store)?
    /// Made for a write that then failed, and used by the next.
    private var unused: (any Store)?
    private let stage = Atomic(Stage.none.rawValue)
    private let make: @Sendable () throws(Status) -> any Store
    private let isWorthKeeping: @Sendable (any Snapshot) throws(Status) -> Bool

    /// - Parameters:
    ///   - isWorthKeeping: called with the state after a write, while there is no permanent store.
    ///   - make: makes the permanent store, empty.
    package init(
        isWorthKeeping: @escaping @Sendable (any Snapshot) throws(Status) -> Bool = { _ in true },
        make: @escaping @Sendable () throws(Status) -> any Store
    ) {
        self.isWorthKeeping = isWorthKeeping
        self.make = make
    }

    private enum Stage: Int {
        case none
        /// Made, but the write that needed it failed.
        case empty
        case made
    }

    /// Whether the permanent store exists.
    package var isMade: Bool { stage.load(ordering: .acquiring) != Stage.none.rawValue }

    @inline(__always)
    private var lasting: (any Store)? { stage.load(ordering: .acquiring) == Stage.made.rawValue ? made : nil }

    package func snapshot() throws(Status) -> any Snapshot { try snapshot(.short) }

    package func snapshot(_ use: SnapshotUse) throws(Status) -> any Snapshot {
        if let lasting { return try lasting.snapshot(use) }
        return try current.store.snapshot(use)
    }

    private var current: (store: any Store, memory: MemoryStore, isMade: Bool, isClosed: Bool) {
        monitor.lock()
        defer { monitor.unlock() }
        return (made ?? memory, memory, made != nil, isClosed)
    }

    package func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        if let lasting { return try lasting.write(body) }
        writer.lock()
        defer { writer.unlock() }
        let current = current
        if current.isMade || current.isClosed { return try current.store.write(body) }
        // Readers must not see state that is not durable: the write is made on a separate copy.
        let draft = try current.memory.copied()
        let result = try draft.write(body)
        if draft.changeCount == 0 { return result }
        let snapshot = try draft.snapshot()
        defer { snapshot.close() }
        if try isWorthKeeping(snapshot) {
            try keep(snapshot)
        } else {
            monitor.withLock { memory = draft }
        }
        return result
    }

    /// Makes the permanent store, with the contents in memory, unless it exists.
    package func keep() throws(Status) {
        if lasting != nil { return }
        writer.lock()
        defer { writer.unlock() }
        let current = current
        if current.isMade || current.isClosed { return }
        let snapshot = try current.memory.snapshot()
        defer { snapshot.close() }
        try keep(snapshot)
    }

    /// The writer's lock must be held.
    private func keep(_ snapshot: any Snapshot) throws(Status) {
        let store: any Store
        if let unused { store = unused } else { store = try make() }
        unused = store
        stage.store(Stage.empty.rawValue, ordering: .releasing)
        try Self.copy(snapshot, to: store)
        unused = nil
        monitor.withLock { made = store }
        stage.store(Stage.made.rawValue, ordering: .releasing)
    }

    private static func copy(_ snapshot: any Snapshot, to store: any Store) throws(Status) {
        try store.write { transaction throws(Status) in
            for keyspace in Keyspace.allCases {
                let cursor = try snapshot.scan(
                    keyspace, KeyRange(lower: [], upper: nil), reverse: false, values: true)
                defer { cursor.close() }
                while try cursor.next() { try transaction.put(keyspace, cursor.key, cursor.value) }
            }
        }
    }

    package func takeDelay() -> Int { lasting?.takeDelay() ?? 0 }

    package func maintain() { lasting?.maintain() }

    package func damage(max: Int) throws(Status) -> [String] { try lasting?.damage(max: max) ?? [] }

    package var sizeBytes: Int? { lasting.map(\.sizeBytes) ?? 0 }

    package var statistics: StoreStatistics { lasting?.statistics ?? StoreStatistics() }

    package func close() { close(because: .unavailable("The database is closed.")) }

    package func close(because reason: Status) {
        writer.lock()
        defer { writer.unlock() }
        monitor.lock()
        isClosed = true
        let (made, memory) = (made, memory)
        monitor.unlock()
        made?.close(because: reason)
        unused?.close(because: reason)
        memory.close(because: reason)
    }
}
