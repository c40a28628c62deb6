import HearthConcurrency
import HearthModel
import HearthEngine

/// The number of open stores, in all registries of a server together: each costs memory and file descriptors.
///
/// Opening a store beyond `openMax` closes the store that has been unused for longest. Only stores in use can exceed
/// that number, up to a bound that the process's file descriptors set.
///
/// `@unchecked Sendable`: the monitor guards the count and the holders.
package final class OpenStores: @unchecked Sendable {
    package struct Bounds {
        /// Open stores, used or not.
        var openMax = Limits.databasesOpenMax
        /// Stores in use.
        var usedMax = Limits.databasesUsedMax
        /// Databases opened without a store.
        var deferredMax = Limits.databasesDeferredMax

        init() {}

        package init(_ shares: DescriptorShares) {
            usedMax = shares.storesUsedMax
            openMax = min(openMax, usedMax)
        }
    }

    private struct Holder {
        weak var holder: (any StoreHolder)?
    }

    private let monitor = Monitor()
    private let bounds: Bounds
    private let threads: LifecycleThreads
    private var count = 0
    /// Databases opened without a store since the unused ones were last closed.
    private var deferredSinceClosed = 0
    private var holders: [Holder] = []

    package init(_ bounds: Bounds = Bounds(), threads: LifecycleThreads) {
        self.bounds = bounds
        self.threads = threads
    }

    func add(_ holder: any StoreHolder) {
        monitor.withLock { holders.append(Holder(holder: holder)) }
    }

    /// The number of open stores.
    var openCount: Int { monitor.withLock { count } }

    /// Creates a store after reserving a slot for it; may wait for other stores to be closed.
    /// - Throws: the error of `make`; RESOURCE_EXHAUSTED when too many stores are in use.
    package func enter(_ make: () throws(Status) -> any Store) throws(Status) -> any Store {
        if openCount >= bounds.openMax { closeUnused(existing: true, max: max(1, bounds.openMax / Self.closedPart)) }
        try monitor.withLock { () throws(Status) in
            if count >= bounds.usedMax {
                throw .resourceExhausted("The server has \(count) databases in use, and opens no more.")
            }
            count += 1
        }
        do throws(Status) {
            return try make()
        } catch {
            leave()
            throw error
        }
    }

    /// A search for unused stores reads all open ones, so each search closes this part of them.
    private static let closedPart = 16

    /// A store is closed.
    package func leave() { monitor.withLock { count -= 1 } }

    /// A database without a store was opened, which costs a little memory.
    func noteDeferred() {
        let isMany = monitor.withLock {
            deferredSinceClosed += 1
            return deferredSinceClosed >= bounds.deferredMax
        }
        if isMany { closeUnused(existing: false) }
    }

    /// Closes unused stores, the longest unused first, and waits for the first of them.
    /// - Parameter before: skips stores used later, in monotonic nanoseconds.
    package func closeUnused(existing: Bool, before: UInt64 = .max, max: Int = .max) {
        let all = monitor.withLock {
            if !existing { deferredSinceClosed = 0 }
            return holders.compactMap(\.holder)
        }
        let unused = all.flatMap { $0.unused(existing: existing, before: before, max: max) }
            .sorted { $0.used < $1.used }.prefix(max)
        guard let first = unused.first else { return }
        for other in unused.dropFirst() { threads.run { other.close() } }
        first.close()
    }
}
