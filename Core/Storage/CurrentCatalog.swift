import HearthModel
import Synchronization

/// The index catalog in force. The writer changes it, readers take it together with a snapshot.
final class CurrentCatalog: Sendable {
    private struct State {
        var catalog: IndexCatalog
        /// Whether another one is just being made durable.
        var isChanging = false
        /// Counts the beginnings and ends of changes.
        var epoch: UInt64 = 0
    }

    private let state: Mutex<State>

    init(_ catalog: IndexCatalog) {
        state = Mutex(State(catalog: catalog))
    }

    var value: IndexCatalog { state.withLock { $0.catalog } }

    /// The catalog in force, and a number that is another one after each change and while one is made.
    var valueAndEpoch: (catalog: IndexCatalog, epoch: UInt64) { state.withLock { ($0.catalog, $0.epoch) } }
    var epoch: UInt64 { state.withLock { $0.epoch } }

    /// A snapshot, and the catalog whose entries it holds: with an older or a newer one, a query could trust an index that
    /// isn't whole.
    func snapshot(of store: any Store, _ use: SnapshotUse = .short) throws(Status) -> (any Snapshot, IndexCatalog) {
        let epoch = state.withLock { $0.epoch }
        let snapshot = try store.snapshot(use)
        let settled = state.withLock { $0.epoch == epoch && !$0.isChanging ? $0.catalog : nil }
        if let settled { return (snapshot, settled) }
        do throws(Status) {
            return (snapshot, try CatalogStore.load(from: snapshot))
        } catch {
            snapshot.close()
            throw error
        }
    }

    // MARK: Writer

    /// From now on snapshots may have the entries of another catalog than the one in force.
    func beginChange() {
        state.withLock { state in
            state.isChanging = true
            state.epoch += 1
        }
    }

    /// - Parameter catalog: what has become durable; nil when nothing has.
    func endChange(_ catalog: IndexCatalog?) {
        state.withLock { state in
            if let catalog { state.catalog = catalog }
            state.isChanging = false
            state.epoch += 1
        }
    }
}

/// Who is told of commits.
final class ChangeObservers: Sendable {
    private let observers = Mutex<[@Sendable (ChangeSet) -> Void]>([])

    func add(_ observer: @escaping @Sendable (ChangeSet) -> Void) {
        observers.withLock { $0.append(observer) }
    }

    func tell(_ sets: [ChangeSet]) {
        let observers = observers.withLock { $0 }
        if observers.isEmpty { return }
        for set in sets {
            for observer in observers { observer(set) }
        }
    }
}
