import HearthConcurrency

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
    /// The reading of parked documents that made it; see `DeliveryParking`.
    var round = 0
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
