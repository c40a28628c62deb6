/// The readings of documents that are parked; see `DeliveryParking`.
extension Delivery {
    /// Gives up a lane whose head waits for another attempt.
    mutating func park(_ lane: DeliveryLane) {
        parking.insert(hash(lane.id), lane.head, deadline: lane.attempts.deadline)
        pass?.satisfy(lane)
        if pass?.hungryCount == 0 { pass = nil }
        lanes.clear(lane)
        lanes.remove(lane)
    }

    /// Whether a round goes on for parked events that are too old, without a request for those that are due: the endpoint
    /// can't be reached, or is slow.
    package var wantsExpired: Bool {
        guard !terms.isPaused, let round = parking.round, parking.first < expired else { return false }
        return endpoint.isDown || now >= round.beganAt + DeliveryParking.slowRoundNanoseconds
    }

    /// How many events the round is to read next: none when the lanes have no space for them.
    var roundCount: Int {
        if parking.round == nil { return 0 }
        if wantsExpired { return DeliveryParking.roundCount }
        return schedule.againCount < terms.concurrency ? min(roundSpace, DeliveryParking.roundCount) : 0
    }

    /// How many lanes the round may have in addition. Those that wait for a request are a quarter of all: others have
    /// space beside them, however slow the endpoint is.
    private var roundSpace: Int {
        let isWaiting = schedule.waitingCount == lanes.count
        return min(max(1, lanes.bounds.lanes / 4) - schedule.againCount, laneSpace(atLeast: isWaiting ? 1 : 0))
    }

    /// - Returns: those that were too old.
    mutating func takeForRound(_ events: [Event], isEnd: Bool) -> [Settled] {
        var settled: [Settled] = []
        var isOver = isEnd
        for event in events {
            guard let read, event.isAtMost(read) else {
                isOver = true
                break
            }
            parking.advance(to: event)
            if !unstored.contains(event), let one = takeForRound(event) { settled.append(one) }
        }
        if isOver { parking.endRound(now) }
        return settled
    }

    private mutating func takeForRound(_ event: Event) -> Settled? {
        let id = laneID(event)
        if let lane = lanes[id] {
            if parking.isGathering(lane) { lanes.append(event.version, to: lane) }
            return nil
        }
        let document = hash(id)
        guard parking.meet(document, event.version) == .isNext else { return nil }
        if event.version < expired {
            parking.take(document)
            return settleParked(event)
        }
        let deadline = attempts[event].deadline
        if deadline > now || roundSpace <= 0 {
            parking.stay(document, event.version, deadline: deadline)
            return nil
        }
        parking.take(document)
        let lane = lanes.insert(id, event)
        lane.round = parking.roundNumber
        begin(event.version, lane)
        return nil
    }

    private mutating func settleParked(_ event: Event) -> Settled {
        let attempts = attempts[event]
        return settle(event, .dead(attempts: attempts.count, attempts.failure ?? .notSent))
    }
}
