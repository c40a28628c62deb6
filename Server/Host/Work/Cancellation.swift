import HearthModel
import HearthStorage
import Synchronization

/// Whether a call is still wanted.
final class Cancellation: Sendable {
    /// What is to be ended when nobody waits for the call any more. A place is taken before there is something to end.
    private struct Handlers: Sendable {
        var next = 0
        var byPlace: [Int: (@Sendable () -> Void)?] = [:]
    }

    private let flag = Atomic<Bool>(false)
    private let handlers = Mutex(Handlers())

    var isCancelled: Bool { flag.load(ordering: .relaxed) }

    /// For work that is queued: whether somebody still waits for it.
    var isWanted: @Sendable () -> Bool { { [self] in !isCancelled } }

    func cancel() {
        flag.store(true, ordering: .relaxed)
        let ends = handlers.withLock { handlers in
            defer { handlers.byPlace = [:] }
            return handlers.byPlace.values.compactMap { $0 }
        }
        for end in ends { end() }
    }

    /// - Throws: CANCELLED when nobody waits any more.
    func check() throws(Status) {
        if isCancelled { throw Status(.cancelled, "The client has cancelled the call.") }
    }

    /// So many things end when the call is cancelled.
    var handlerCount: Int { handlers.withLock { $0.byPlace.count } }

    fileprivate func takePlace() -> Int {
        handlers.withLock { handlers in
            handlers.next += 1
            handlers.byPlace[handlers.next] = .some(nil)
            return handlers.next
        }
    }

    fileprivate func leave(_ place: Int) { handlers.withLock { _ = $0.byPlace.removeValue(forKey: place) } }

    /// Has `end` called when the call is cancelled: at once when it is already; never when the place was left.
    fileprivate func set(_ place: Int, _ end: @escaping @Sendable () -> Void) {
        let isLate = handlers.withLock { handlers in
            // `cancel` sets the flag before it takes the places away.
            if isCancelled {
                handlers.byPlace[place] = nil
                return true
            }
            if handlers.byPlace[place] != nil { handlers.byPlace[place] = .some(end) }
            return false
        }
        if isLate { end() }
    }
}

extension LongReads {
    /// Calls `begin` once when it is the requester's turn, or never when the call is cancelled before: then it no longer
    /// takes up room among those that wait.
    /// - Returns: what cancels the wait of a call that goes on or has ended by itself.
    @discardableResult
    func whenFree(
        for requester: Requester, cancellation: Cancellation,
        _ begin: @escaping @Sendable (Result<LongRead, Status>) -> Void
    ) -> LongReadRequest? {
        let place = cancellation.takePlace()
        let request = whenFree(for: requester) { result in
            cancellation.leave(place)
            begin(result)
        }
        // Cancelling what has had its turn does nothing.
        if let request { cancellation.set(place) { request.cancel() } } else { cancellation.leave(place) }
        return request
    }
}
