/// A second reading of a part of the queue, for lanes that had no space for events when they were read. It begins at the first
/// event that was left out of a lane with much space, and serves each lane whose events it comes by, until all that had much space are
/// full. So many lanes that advance together cost one reading, not one each.
struct DeliveryPass {
    let from: Int64
    var after: Delivery.Event
    /// Lanes that it goes on for.
    let hungry: [DeliveryLane]
    private(set) var hungryCount: Int
    /// Lanes that were full when it came by one of their events: they get none behind it.
    var passed: Set<ObjectIdentifier> = []

    /// Read at once.
    static let countMax = 1024

    init(from version: Int64, for lanes: [DeliveryLane]) {
        from = version
        after = Delivery.Event(version: version, key: [])
        hungry = lanes
        hungryCount = lanes.count
        for lane in lanes { lane.isHungry = true }
    }

    /// A lane has what it needs, or has ended.
    mutating func satisfy(_ lane: DeliveryLane) {
        if lane.isHungry { hungryCount -= 1 }
        lane.isHungry = false
    }
}

extension Delivery {
    private func wantsPass(_ lane: DeliveryLane) -> Bool {
        lane.leftOut != nil && (lane.isStarved || lane.followers.count * 2 <= lanes.share)
    }

    /// The version where the next pass begins.
    var passStart: Int64 {
        lanes.values.reduce(Int64.max) { start, lane in
            wantsPass(lane) ? min(start, lane.leftOut?.first ?? .max) : start
        }
    }

    mutating func takeForPass(_ events: [Event], isEnd: Bool) {
        if pass == nil { pass = DeliveryPass(from: passStart, for: lanes.values.filter(wantsPass)) }
        var isOver = isEnd
        for event in events {
            if let read, event.version > read.version {
                isOver = true
                break
            }
            if !unstored.contains(event), let lane = lanes[laneID(event)] { takeAgain(event.version, lane) }
            guard let pass, pass.hungryCount > 0 else { break }
        }
        if let last = events.last { pass?.after = last }
        if isOver { endPass() }
        if pass?.hungryCount == 0 { pass = nil }
    }

    private mutating func takeAgain(_ version: Int64, _ lane: DeliveryLane) {
        guard let pass, let leftOut = lane.leftOut, pass.from <= leftOut.first, leftOut.first...leftOut.last ~= version
        else { return }
        if pass.passed.contains(ObjectIdentifier(lane)) { return }
        // It may also come by what is under way.
        let needsSpace = !lane.isStarved && !lane.isSending(version)
        if needsSpace, !lanes.hasSpace(lane) {
            lane.leftOut = (version, leftOut.last)
            self.pass?.passed.insert(ObjectIdentifier(lane))
            self.pass?.satisfy(lane)
            return
        }
        lane.leftOut = version < leftOut.last ? (version + 1, leftOut.last) : nil
        if lane.leftOut == nil { self.pass?.satisfy(lane) }
        if needsSpace {
            lanes.addFollower(version, lane)
        } else if lane.isStarved {
            lane.isStarved = false
            lanes.starvedCount -= 1
            begin(version, lane)
        }
    }

    /// What was left out of lanes that are still hungry was deleted meanwhile.
    private mutating func endPass() {
        for lane in pass?.hungry ?? [] where lane.isHungry {
            pass?.satisfy(lane)
            lane.leftOut = nil
            guard lane.isStarved else { continue }
            lanes.starvedCount -= 1
            lanes.remove(lane)
        }
        pass = nil
    }
}
