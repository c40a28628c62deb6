import HearthModel

/// What operators must know of the base of a `LoggedStore`. Whether commits succeed, and whether the store is open, the
/// store itself reports; that the base can't be written means that the log can't be applied, which it reports, too.
package final class LoggedBaseObserver: StoreObserver {
    private let observer: any StoreObserver

    package init(_ observer: any StoreObserver) { self.observer = observer }

    package func store(_ name: String, reports event: StoreEvent) {
        switch event {
        case .commitsFail, .commitsRecovered, .closed: break
        default: observer.store(name, reports: event)
        }
    }
}
