import HearthModel
import Synchronization

/// Bounds the memory of the tables of many stores.
///
/// From three quarters on the store with the largest active trees is asked to freeze them, and writes are delayed; at the
/// bound they wait for the appliers. While memory is tight there are a quarter as many bytes; the bound, at which others'
/// writes wait, too, is half.
package final class TableBudget: Sendable {
    package static let process = TableBudget(bytesMax: 128 << 20)

    private let bytesMax: Int
    private let isTight = Atomic(false)
    private let total = Atomic(0)
    private let state = Mutex(State())

    private struct Entry {
        weak var store: (any TableOwner)?
        var activeBytes = 0
        var frozenBytes = 0
        /// Why they can't be applied.
        var failure: Status?
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        var activeBytes = 0
    }

    package init(bytesMax: Int) { self.bytesMax = bytesMax }

    package func setTight(_ isTight: Bool) {
        self.isTight.store(isTight, ordering: .relaxed)
        freezeLargest()
    }

    var bytes: Int { total.load(ordering: .relaxed) }

    private var fittingBytes: Int { isTight.load(ordering: .relaxed) ? bytesMax / 4 : bytesMax }

    /// The bytes of active trees from which on some are frozen; the rest is for those that are being applied.
    private var activeBytesMax: Int { fittingBytes / 4 * 3 }

    /// From 0 to 1: how much of the last quarter is used.
    var excess: Double {
        let over = bytes - activeBytesMax
        return over <= 0 ? 0 : min(1, Double(over) / Double(max(1, fittingBytes - activeBytesMax)))
    }

    /// Whether no table may grow.
    var isFull: Bool { bytes >= (isTight.load(ordering: .relaxed) ? bytesMax / 2 : bytesMax) }

    /// Why some of the tables don't become smaller.
    var failure: Status? { state.withLock { state in state.entries.values.lazy.compactMap(\.failure).first } }

    /// Notes whether the frozen trees of a store can't be applied.
    func set(_ store: any TableOwner, failure: Status?) {
        state.withLock { $0.entries[ObjectIdentifier(store)]?.failure = failure }
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
            return state.activeBytes > activeBytesMax
        }
        if isOver { freezeLargest() }
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
            state.activeBytes -= entry.activeBytes
            total.subtract(entry.activeBytes + entry.frozenBytes, ordering: .relaxed)
        }
    }
}

/// A store with a table.
protocol TableOwner: AnyObject, Sendable {
    /// Requests that the active trees are frozen; doesn't wait.
    func freezeSoon()
}
