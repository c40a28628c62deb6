import HearthHost
import HearthConcurrency
import HearthModel

/// The requests of a stream that wait for earlier ones. They wait encoded, because decoded they may be many times as
/// large. Their bytes count as received bytes.
struct WaitingRequests {
    private var queue = Queue<[UInt8]>()
    private var bytes = 0
    private let held: MemoryReservation

    init(_ memory: MemoryBudget, for requester: Requester) { held = memory.reservation(for: requester) }

    var isEmpty: Bool { queue.isEmpty }

    /// Reading pauses while this much waits.
    var isFull: Bool {
        queue.count >= Limits.streamRequestsWaitingMax || bytes >= Limits.streamRequestsWaitingBytesMax
    }

    mutating func append(_ request: [UInt8]) {
        queue.append(request)
        bytes += request.count
    }

    mutating func popFirst() -> [UInt8]? {
        let request = queue.popFirst()
        bytes -= request?.count ?? 0
        return request
    }

    mutating func removeAll() {
        queue = Queue()
        bytes = 0
        held.resize(to: 0)
    }

    /// Counts the waiting requests. To be called when everything is done that could be done immediately: a request that
    /// does not wait costs nothing here.
    /// - Throws: RESOURCE_EXHAUSTED when the client has used its share.
    mutating func count() throws(Status) {
        if bytes == held.bytes || held.resize(to: bytes) { return }
        throw LargeRequests.tooMany
    }
}
