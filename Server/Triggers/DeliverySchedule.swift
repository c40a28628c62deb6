import HearthConcurrency

/// Lanes whose head is to be sent: at once, or when a pause is over. Those that have failed get at most every second
/// request while others have something to send, and only a part of those under way (`DeliveryEndpoint.mayRepeat`).
struct DeliverySchedule {
    private var fresh = Queue<DeliveryLane>()
    /// Whose heads have failed.
    private var again = Queue<DeliveryLane>()
    private var waiting = TimerHeap<DeliveryLane>()
    private var wasAgain = false
    private let endpoint: DeliveryEndpoint

    init(_ endpoint: DeliveryEndpoint) { self.endpoint = endpoint }

    /// Whether there is something that the endpoint may have.
    var hasAny: Bool { !fresh.isEmpty || hasAgain }
    private var hasAgain: Bool { !again.isEmpty && endpoint.mayRepeat }
    var freshCount: Int { fresh.count }
    var againCount: Int { again.count }
    /// Lanes in a pause.
    var waitingCount: Int { waiting.count }
    /// Lanes whose heads have failed.
    var failedCount: Int { again.count + waiting.count }
    /// When `wake` has something to do next.
    var earliestDeadline: UInt64? { waiting.earliestDeadline }

    mutating func append(_ lane: DeliveryLane) {
        if lane.attempts.count == 0 { return fresh.append(lane) }
        again.append(lane)
        endpoint.failedLanes += 1
    }

    mutating func prepend(_ lane: DeliveryLane) {
        if lane.attempts.count == 0 { return fresh.prepend(lane) }
        again.prepend(lane)
        endpoint.failedLanes += 1
    }

    /// Has a lane that has failed wait for its time.
    mutating func wait(_ lane: DeliveryLane) {
        waiting.insert(lane)
        endpoint.failedLanes += 1
    }

    /// Takes up those whose pause is over.
    mutating func wake(_ now: UInt64) { while let lane = waiting.popDue(now) { again.append(lane) } }

    mutating func popFirst() -> DeliveryLane? {
        wasAgain = fresh.isEmpty || !wasAgain && hasAgain
        guard wasAgain else { return fresh.popFirst() }
        guard hasAgain, let lane = again.popFirst() else { return nil }
        endpoint.failedLanes -= 1
        return lane
    }

    mutating func remove(_ lanes: [DeliveryLane]) {
        let removed = Set(lanes.map { ObjectIdentifier($0) })
        endpoint.failedLanes -= failedCount
        fresh.retain { !removed.contains(ObjectIdentifier($0)) }
        again.retain { !removed.contains(ObjectIdentifier($0)) }
        for lane in lanes { waiting.remove(lane) }
        endpoint.failedLanes += failedCount
    }

    mutating func removeAll() {
        endpoint.failedLanes -= failedCount
        fresh = Queue()
        again = Queue()
        waiting.removeAll()
    }
}
