import HearthConcurrency

/// The attempts of an event that were answered.
struct DeliveryAttempts {
    var count = 0
    /// Those of them that the pause before the next one doesn't depend on.
    var pardoned = 0
    /// Why the last one failed.
    var failure: DeliveryFailure?
    /// When the next one may be made.
    var deadline: UInt64 = 0

    /// The next one may be made at once, and pauses begin anew.
    mutating func pardon() {
        pardoned = count
        deadline = 0
    }
}

/// The events of a document, or one event, of which the first is sent.
final class DeliveryLane: HeapTimer {
    let id: [UInt8]
    let key: [UInt8]
    var head: Int64
    /// Of the head.
    var attempts = DeliveryAttempts()
    var followers = Queue<Int64>()
    /// Events of these versions are in the queue, but not in `followers`: all from the first on, of which the last is
    /// known.
    var leftOut: (first: Int64, last: Int64)?
    /// Whether it has no head: all that it has was left out.
    var isStarved = false
    /// Whether the present pass goes on for it.
    var isHungry = false
    var isSending = false
    /// As how many it counts.
    var count = 0
    /// When the head is sent again.
    var deadline: UInt64 { attempts.deadline }
    var heapIndex = -1

    init(_ id: [UInt8], _ event: Delivery.Event) {
        self.id = id
        key = event.key
        head = event.version
    }

    var event: Delivery.Event { Delivery.Event(version: head, key: key) }

    /// Whether an event of the lane is being sent: when it's read again, it's known.
    func isSending(_ version: Int64) -> Bool { isSending && head == version }
}
