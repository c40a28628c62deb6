/// An observer that receives a query's events, or only keeps its data current.
final class EngineObserver {
    let id: ObserverID
    let kinds: EngineEventKinds
    let isSingle: Bool
    /// After the event of a single observer, or after its removal.
    var isSpent = false
    let onEvent: (EngineEvent) -> Void
    let onCancel: (WireFailure) -> Void

    init(
        id: ObserverID, kinds: EngineEventKinds, isSingle: Bool, onEvent: @escaping (EngineEvent) -> Void,
        onCancel: @escaping (WireFailure) -> Void
    ) {
        self.id = id
        self.kinds = kinds
        self.isSingle = isSingle
        self.onEvent = onEvent
        self.onCancel = onCancel
    }
}
