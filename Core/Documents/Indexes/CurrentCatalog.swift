import HearthEngine
import HearthModel
import Synchronization

/// The index catalog in force. The writer changes it, readers take it together with a snapshot.
final class CurrentCatalog: Sendable {
    private struct State {
        var catalog: IndexCatalog
        /// The one that is just being made durable, and its form in the store.
        var next: (catalog: IndexCatalog, bytes: [UInt8])?
        /// For tests: how often readers had to decode one.
        var loads = 0
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
    var loads: Int { state.withLock { $0.loads } }

    /// A snapshot, and the catalog whose entries it holds: with an older or a newer one, a query could trust an index that
    /// isn't whole.
    func snapshot(of store: any Store, _ use: SnapshotUse = .short) throws(Status) -> (any Snapshot, IndexCatalog) {
        let epoch = state.withLock { $0.epoch }
        let snapshot = try store.snapshot(use)
        let (present, next) = state.withLock { $0.epoch == epoch ? ($0.catalog, $0.next) : (nil, nil) }
        do throws(Status) {
            if let present {
                // One of the two. To compare is a small part of the work of decoding.
                guard let next else { return (snapshot, present) }
                let isNext = try snapshot.get(.meta, CatalogStore.key) == next.bytes
                return (snapshot, isNext ? next.catalog : present)
            }
            state.withLock { $0.loads += 1 }
            return (snapshot, try CatalogStore.load(from: snapshot))
        } catch {
            snapshot.close()
            throw error
        }
    }

    // MARK: Writer

    /// From now on snapshots may have the entries of another catalog than the one in force.
    /// - Parameter bytes: its form in the store.
    func beginChange(to catalog: IndexCatalog, _ bytes: [UInt8]) {
        state.withLock { state in
            state.next = (catalog, bytes)
            state.epoch += 1
        }
    }

    /// - Parameter catalog: what has become durable; nil when nothing has.
    func endChange(_ catalog: IndexCatalog?) {
        state.withLock { state in
            if let catalog { state.catalog = catalog }
            state.next = nil
            state.epoch += 1
        }
    }
}
