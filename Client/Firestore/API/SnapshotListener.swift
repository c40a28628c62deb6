internal import Foundation
internal import HearthModel
internal import HearthSync

/// The only kind of registration.
final class SnapshotListener: NSObject, ListenerRegistration, Sendable {
    private struct State {
        var isRemoved = false
        var listener: EngineListener?
    }

    private let firestore: Firestore
    private let state = Locked(State())

    init(firestore: Firestore) { self.firestore = firestore }

    /// Starts a listener of a query whose events go to the user's queue.
    static func listen(
        _ firestore: Firestore, to query: ClientQuery, _ options: SnapshotListenOptions,
        onEvent: @escaping @Sendable (Result<ViewSnapshot, Status>) -> Void
    ) -> SnapshotListener {
        let registration = SnapshotListener(firestore: firestore)
        registration.start(
            firestore.engine.listen(to: query, options: options.model) { [registration] result in
                registration.deliver { onEvent(result) }
            })
        return registration
    }

    /// A listener that only receives an error: its query cannot be listened to.
    static func fail(_ firestore: Firestore, _ onError: @escaping @Sendable () -> Void) -> SnapshotListener {
        let registration = SnapshotListener(firestore: firestore)
        registration.deliver(onError)
        return registration
    }

    func start(_ listener: EngineListener) {
        let isRemoved = state.with { state in
            state.listener = listener
            return state.isRemoved
        }
        if isRemoved { listener.remove() }
    }

    /// Runs an event on the user's queue, unless the listener was removed until then.
    func deliver(_ event: @escaping @Sendable () -> Void) {
        firestore.deliver { [self] in
            if !state.with({ $0.isRemoved }) { event() }
        }
    }

    func remove() {
        let listener = state.with { state in
            state.isRemoved = true
            defer { state.listener = nil }
            return state.listener
        }
        listener?.remove()
    }
}
