import HearthTree

/// A change that depends on present data: computed by the client, accepted by the server only if the server has the
/// same data.
final class Transaction {
    enum State {
        /// Computed, not sent.
        case ready
        case sent
        /// Sent, but cancelled if the server rejects it.
        case sentForTheLastTime(WireFailure)
        case failed(WireFailure)
        case done
    }

    let path: TreePath
    /// Transactions run in the order of creation.
    let number: Int64
    let isVisible: Bool
    let update: (Node) -> Node?
    let completion: (TransactionOutcome) -> Void
    /// Keeps the data at the location current.
    let observer: ObserverID

    var state = State.ready
    var sendings = 0
    /// The pending write of the last output.
    var writeID: Int64 = 0
    /// The function's result; values may be deferred.
    var output = Node.empty
    /// The input of the function.
    var input = Node.empty
    /// The location's data at that time.
    var result = Node.empty

    init(
        at path: TreePath, number: Int64, isVisible: Bool, observer: ObserverID, update: @escaping (Node) -> Node?,
        completion: @escaping (TransactionOutcome) -> Void
    ) {
        self.path = path
        self.number = number
        self.isVisible = isVisible
        self.observer = observer
        self.update = update
        self.completion = completion
    }

    var isReady: Bool { if case .ready = state { true } else { false } }
    var isDone: Bool { if case .done = state { true } else { false } }
    var failure: WireFailure? { if case .failed(let failure) = state { failure } else { nil } }
}
