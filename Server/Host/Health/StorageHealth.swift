import HearthModel
import HearthEngine
import Synchronization

/// Whether the disk accepts writes, as the stores of both products report it: for the log and for `/readyz`.
///
/// A store reports when commits begin to fail and when they succeed again, so each is logged once, however many commits
/// fail.
package final class StorageHealth: Sendable {
    private struct Key: Hashable {
        var product: Product
        var database: [UInt8]
    }

    package enum Product: Sendable {
        case firestore
        case realtime
    }

    private struct State {
        /// The status with which the commits of each store began to fail.
        var failing: [Key: Status] = [:]
        var order: [Key] = []
        /// Stores that cannot be opened.
        var unopened: Set<Key> = []
    }

    private let log: Log
    private let state = Mutex(State())

    package init(log: Log) { self.log = log }

    /// The observer that the stores of a product notify.
    package func observer(of product: Product) -> any StoreObserver { Observer(self, product) }

    /// Why the server is not ready; nil when it is.
    package var failure: String? {
        state.withLock { state in
            guard let first = state.order.first, let status = state.failing[first] else { return nil }
            let others = state.failing.count - 1
            return "Commits fail: \(status.message)" + (others > 0 ? " So do those of \(others) other databases." : "")
        }
    }

    /// Databases whose commits fail, or that cannot be opened. The latter don't make the server unready: the others are
    /// served, and would not be any more if the server were taken out of service for one.
    package var failingCount: Int { state.withLock { $0.failing.count + $0.unopened.count } }

    fileprivate func report(_ product: Product, _ name: String, _ event: StoreEvent) {
        let key = Key(product: product, database: Array(name.utf8))
        let isNews = state.withLock { state in
            switch event {
            case .commitsFail(let status):
                if state.failing.updateValue(status, forKey: key) == nil { state.order.append(key) }
            case .commitsRecovered, .closed, .deleted:
                if state.failing.removeValue(forKey: key) != nil { state.order.removeAll { $0 == key } }
                // An opening that fails ends with `.closed`, too.
                if event == .deleted { state.unopened.remove(key) }
            case .openFails:
                // They are logged again.
                if state.unopened.count >= Limits.unopenedStoresMax { state.unopened = [] }
                return state.unopened.insert(key).inserted
            case .opened: return state.unopened.remove(key) != nil
            default: break
            }
            return true
        }
        if isNews { record(event, (product == .firestore ? "database" : "namespace", .string(name))) }
    }

    private func record(_ event: StoreEvent, _ store: Log.Field) {
        switch event {
        case .commitsFail(let status): log.error("commits fail", store, ("reason", .string(status.message)))
        case .commitsRecovered(let failures):
            log.info("commits succeed again", store, ("failures", .integer(failures)))
        case .applicationsFail(let status):
            log.error(
                "commits can't be copied from the log into the database's file, and the log grows", store,
                ("reason", .string(status.message)))
        case .applicationsRecovered(let failures):
            log.info("the database's file follows the log again", store, ("failures", .integer(failures)))
        case .writesStall: log.warning("commits wait: the database's file does not follow the log", store)
        case .writesFlow: log.info("commits no longer wait for the database's file", store)
        case .checkpointsFail(let status):
            log.error(
                "SQLite's log can't be copied into the database's file, and grows", store,
                ("reason", .string(status.message)))
        case .checkpointsRecovered(let failures):
            log.info("SQLite's log is copied again", store, ("failures", .integer(failures)))
        case .snapshotsRevoked(let count):
            log.warning("reads that kept too much of SQLite's log were ended", store, ("reads", .integer(count)))
        case .logIsLong(let bytes):
            log.warning(
                "SQLite's log is long: a read keeps it, or the disk is slow", store, ("bytes", .integer(bytes)))
        case .openFails(let status, let file):
            log.error(
                "the database can't be opened", store, ("file", .string(file)), ("reason", .string(status.message)))
        case .opened: log.info("the database can be opened again", store)
        case .foundEmpty(let file):
            log.warning(
                "the database's file is empty: it was never written, or was truncated", store, ("file", .string(file)))
        case .closed, .deleted: break
        }
    }

    private final class Observer: StoreObserver {
        private let health: StorageHealth
        private let product: Product

        init(_ health: StorageHealth, _ product: Product) {
            self.health = health
            self.product = product
        }

        func store(_ name: String, reports event: StoreEvent) { health.report(product, name, event) }
    }
}
