import HearthConcurrency
import HearthModel
import HearthEngine

/// Something open that nobody uses.
package struct UnusedStore: Sendable {
    /// When it was used last, in monotonic nanoseconds.
    var used: UInt64
    /// Closes it, when still nobody uses it, and waits for that.
    var close: @Sendable () -> Void
}

/// What has stores open that nobody may use.
package protocol StoreHolder: AnyObject, Sendable {
    func unused(existing: Bool, before: UInt64, max: Int) -> [UnusedStore]
}

/// How many stores are open, in all registries of a server together: each costs memory and file descriptors.
///
/// A store beyond the number that is wanted costs the closing of the one that has been unused for longest. Only stores in
/// use can go beyond it, up to a bound that the process's descriptors set.
///
/// `@unchecked Sendable`: the monitor guards the count and the holders.
package final class OpenStores: @unchecked Sendable {
    package struct Bounds {
        /// Open, used or not.
        var openMax = Limits.databasesOpenMax
        /// In use.
        var usedMax = Limits.databasesUsedMax
        /// Opened without a store.
        var deferredMax = Limits.databasesDeferredMax

        init() {}

        /// - Parameter descriptorsMax: that the process may have.
        package init(descriptorsMax: Int) {
            usedMax = max(8, min(usedMax, descriptorsMax / 2 / Limits.databaseDescriptorsMax))
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
    /// Opened without a store since those that nobody used were closed.
    private var deferredSinceClosed = 0
    private var holders: [Holder] = []

    package init(_ bounds: Bounds = Bounds(), threads: LifecycleThreads) {
        self.bounds = bounds
        self.threads = threads
    }

    func add(_ holder: any StoreHolder) {
        monitor.withLock { holders.append(Holder(holder: holder)) }
    }

    /// Stores that are open.
    var openCount: Int { monitor.withLock { count } }

    /// Makes a store after room was made for it; may wait for others to be closed.
    /// - Throws: what `make` throws; RESOURCE_EXHAUSTED when too many stores are in use.
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

    /// Looking for what is unused costs a look at all that is open: done once for some that are opened.
    private static let closedPart = 16

    /// A store is closed.
    package func leave() { monitor.withLock { count -= 1 } }

    /// Something was opened that has no store; that costs little, but not nothing.
    func noteDeferred() {
        let isMany = monitor.withLock {
            deferredSinceClosed += 1
            return deferredSinceClosed >= bounds.deferredMax
        }
        if isMany { closeUnused(existing: false) }
    }

    /// Closes what is unused, the longest unused first, and waits for the first of them.
    /// - Parameter before: spares what was used later, in monotonic nanoseconds.
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
