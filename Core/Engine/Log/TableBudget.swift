import Synchronization

/// Bounds the memory of the tables of many stores: when it is used up, the store with the largest active trees is asked
/// to freeze them.
package final class TableBudget: Sendable {
    package static let process = TableBudget(bytesMax: 128 << 20)

    let bytesMax: Int
    /// The bytes of active trees from which on some are frozen; the rest is for those that are being applied.
    private let activeBytesMax: Int
    private let total = Atomic(0)
    private let state = Mutex(State())

    private struct Entry {
        weak var store: (any TableOwner)?
        var activeBytes = 0
        var frozenBytes = 0
    }

    private struct State {
        var entries: [ObjectIdentifier: Entry] = [:]
        var activeBytes = 0
    }

    package init(bytesMax: Int) {
        self.bytesMax = bytesMax
        activeBytesMax = bytesMax / 4 * 3
    }

    var bytes: Int { total.load(ordering: .relaxed) }

    /// From 0 to 1: how far the tables are beyond the budget, of another budget.
    var excess: Double {
        let over = bytes - bytesMax
        return over <= 0 ? 0 : min(1, Double(over) / Double(max(1, bytesMax)))
    }

    /// Notes the present sizes of a store.
    func set(_ store: any TableOwner, active: Int, frozen: Int) {
        let largest = state.withLock { state -> (any TableOwner)? in
            let id = ObjectIdentifier(store)
            var entry = state.entries[id] ?? Entry(store: store)
            state.activeBytes += active - entry.activeBytes
            total.add(active - entry.activeBytes + frozen - entry.frozenBytes, ordering: .relaxed)
            entry.activeBytes = active
            entry.frozenBytes = frozen
            state.entries[id] = entry
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
