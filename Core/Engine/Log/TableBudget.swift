import HearthModel
import Synchronization

/// Bounds the memory of the tables of many stores.
///
/// A quarter of the bytes is for small tables: the writes of a store that has its part of that are neither delayed nor
/// stopped by what others have. Of the rest, from three quarters on the store with the largest active trees is asked to freeze
/// them, and writes are delayed; where the rest ends, they wait for the appliers. While memory is tight there are a quarter as
/// many bytes, and writes wait from half of all on.
package final class TableBudget: Sendable {
    package static let process = TableBudget(bytesMax: 128 << 20)

    private let bytesMax: Int
    private let isTight = Atomic(false)
    private let isProcessLarge = Atomic(false)
    private let total = Atomic(0)
    private let count = Atomic(0)
    private let state = Mutex(State())

    private struct Entry {
        weak var store: (any TableOwner)?
        var activeBytes = 0
        var frozenBytes = 0
        /// What snapshots keep of earlier versions of its table.
        var keptBytes = 0
        /// Whether they can't be applied.
        var isBlocked = false
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        var activeBytes = 0
        var keptBytes = 0
    }

    package init(bytesMax: Int) { self.bytesMax = bytesMax }

    package func setTight(_ isTight: Bool) {
        self.isTight.store(isTight, ordering: .relaxed)
        freezeLargest()
        if keepsTooMuch { revokeOldest() }
    }

    /// Notes whether the process is large, however much clients hold.
    package func setProcessLarge(_ isLarge: Bool) {
        isProcessLarge.store(isLarge, ordering: .relaxed)
        if keepsTooMuch { revokeOldest() }
    }

    var bytes: Int { total.load(ordering: .relaxed) }

    var keptBytes: Int { state.withLock { $0.keptBytes } }

    private var fittingBytes: Int { isTight.load(ordering: .relaxed) ? bytesMax / 4 : bytesMax }

    /// Of all tables but small ones.
    private var commonBytes: Int { fittingBytes / 4 * 3 }

    /// The bytes of active trees from which on some are frozen; the rest is for those that are being applied.
    private var activeBytesMax: Int { commonBytes / 4 * 3 }

    /// What a store may have without regard to others.
    private var smallBytesMax: Int { fittingBytes / 4 / max(1, count.load(ordering: .relaxed)) }

    /// From 0 to 1, where writes wait: how much of what delays them is used.
    /// - Parameter own: bytes of the store's tables.
    func excess(_ own: Int) -> Double {
        let over = bytes - activeBytesMax
        if over <= 0 || own <= smallBytesMax { return 0 }
        return min(1, Double(over) / Double(max(1, commonBytes - activeBytesMax)))
    }

    /// Whether a store's tables may not grow.
    /// - Parameter own: their bytes.
    func isFull(_ own: Int) -> Bool {
        let bound = isTight.load(ordering: .relaxed) ? bytesMax / 2 : bytesMax
        return bytes >= (own <= smallBytesMax ? bound : bound / 4 * 3)
    }

    /// Whether some of the tables don't become smaller.
    var isBlocked: Bool { state.withLock { $0.entries.values.contains { $0.isBlocked } } }

    /// Notes whether the frozen trees of a store can't be applied.
    func set(_ store: any TableOwner, isBlocked: Bool) {
        state.withLock { $0.entries[ObjectIdentifier(store)]?.isBlocked = isBlocked }
    }

    /// Notes the present sizes of a store.
    func set(_ store: any TableOwner, active: Int, frozen: Int) {
        let id = ObjectIdentifier(store)
        let isOver = state.withLock { state in
            var entry = state.entries[id] ?? Entry(store: store)
            state.activeBytes += active - entry.activeBytes
            total.add(active - entry.activeBytes + frozen - entry.frozenBytes, ordering: .relaxed)
            entry.activeBytes = active
            entry.frozenBytes = frozen
            state.entries[id] = entry
            count.store(state.entries.count, ordering: .relaxed)
            return state.activeBytes > activeBytesMax
        }
        if isOver { freezeLargest() }
    }

    /// What long snapshots may keep of earlier versions of all tables; above it the oldest is taken away.
    private var keptBytesMax: Int {
        isTight.load(ordering: .relaxed) || isProcessLarge.load(ordering: .relaxed) ? bytesMax / 8 : bytesMax / 2
    }

    /// Notes how many bytes the snapshots of a store keep of earlier versions.
    func set(_ store: any TableOwner, kept bytes: Int) {
        state.withLock { state in
            let id = ObjectIdentifier(store)
            guard let before = state.entries[id]?.keptBytes else { return }
            state.keptBytes += bytes - before
            state.entries[id]?.keptBytes = bytes
        }
        if keepsTooMuch { revokeOldest() }
    }

    private var keepsTooMuch: Bool { keptBytes > keptBytesMax }

    /// The stores whose snapshots keep several versions. The only one of a store stays, so it doesn't count.
    private var keepers: [(store: any TableOwner, bytes: Int)] {
        let stores = state.withLock { state in
            state.entries.values.filter { $0.keptBytes > 0 }.map { (store: $0.store, bytes: $0.keptBytes) }
        }
        return stores.compactMap { entry in
            guard let store = entry.store, store.keepsManyVersions else { return nil }
            return (store, entry.bytes)
        }
    }

    /// How much of what a store keeps may stay, from 0 to 1.
    func keptShare(of store: any TableOwner) -> Double {
        let keepers = keepers
        let excess = keepers.reduce(0) { $0 + $1.bytes } - keptBytesMax
        guard excess > 0, let own = keepers.first(where: { $0.store === store })?.bytes else { return 1 }
        return max(0, 1 - Double(excess) / Double(own))
    }

    /// Asks the store that keeps most to take the oldest versions away.
    private func revokeOldest() {
        let keepers = keepers
        if keepers.reduce(0, { $0 + $1.bytes }) <= keptBytesMax { return }
        keepers.max { $0.bytes < $1.bytes }?.store.revokeSoon()
    }

    /// Asks the store with the largest active trees to freeze them, if there are too many.
    func freezeLargest() {
        let largest = state.withLock { state -> (any TableOwner)? in
            if state.activeBytes <= activeBytesMax { return nil }
            // A store whose frozen trees are being applied can't freeze more.
            return state.entries.values.filter { $0.frozenBytes == 0 && $0.activeBytes > 0 }
                .max { $0.activeBytes < $1.activeBytes }?.store
        }
        largest?.freezeSoon()
    }

    func remove(_ store: any TableOwner) {
        state.withLock { state in
            guard let entry = state.entries.removeValue(forKey: ObjectIdentifier(store)) else { return }
            count.store(state.entries.count, ordering: .relaxed)
            state.activeBytes -= entry.activeBytes
            state.keptBytes -= entry.keptBytes
            total.subtract(entry.activeBytes + entry.frozenBytes, ordering: .relaxed)
        }
    }
}

/// A store with a table.
protocol TableOwner: AnyObject, Sendable {
    /// Requests that the active trees are frozen; doesn't wait.
    func freezeSoon()
    /// Whether snapshots hold several versions of the table.
    var keepsManyVersions: Bool { get }
    /// Requests that the oldest version of the table that snapshots hold is taken away from them; doesn't wait.
    func revokeSoon()
}
