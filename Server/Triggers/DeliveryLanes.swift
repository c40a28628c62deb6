import HearthConcurrency

/// The lanes of a delivery that are in memory, and how much they hold together.
struct DeliveryLanes {
    let bounds: Delivery.Bounds
    private let endpoint: DeliveryEndpoint
    private var lanes: [[UInt8]: DeliveryLane] = [:]
    /// What the lanes count as, for the endpoint.
    private var charged = 0
    /// Events behind the heads of all lanes.
    private var followerCount = 0
    /// Lanes without an event, which need those that were left out.
    var starvedCount = 0

    init(_ bounds: Delivery.Bounds, _ endpoint: DeliveryEndpoint) {
        self.bounds = bounds
        self.endpoint = endpoint
    }

    var count: Int { lanes.count }
    var isEmpty: Bool { lanes.isEmpty }
    var values: some Collection<DeliveryLane> { lanes.values }

    subscript(id: [UInt8]) -> DeliveryLane? { lanes[id] }

    /// Makes a lane, which has no lane's id.
    mutating func insert(_ id: [UInt8], _ event: Delivery.Event) -> DeliveryLane {
        let lane = DeliveryLane(id, event)
        lanes[id] = lane
        charge(lane)
        return lane
    }

    /// - Precondition: the lane has no followers.
    mutating func remove(_ lane: DeliveryLane) {
        lanes[lane.id] = nil
        endpoint.changeLanes(by: -lane.count)
        charged -= lane.count
    }

    mutating func removeAll() {
        endpoint.changeLanes(by: -charged)
        charged = 0
        followerCount = 0
        starvedCount = 0
        lanes = [:]
    }

    // MARK: What is behind heads

    mutating func append(_ version: Int64, to lane: DeliveryLane) {
        if let first = lane.leftOut?.first {
            lane.leftOut = (first, version)
        } else if hasSpace(lane) {
            addFollower(version, lane)
        } else {
            lane.leftOut = (version, version)
        }
    }

    /// Each lane may have its share of what all may have, so that they get through it about together.
    var share: Int { max(bounds.followers, bounds.lanes * bounds.followers / max(1, lanes.count)) }

    func hasSpace(_ lane: DeliveryLane) -> Bool {
        let count = lane.followers.count
        if count < bounds.followers { return true }
        return count < share && followerCount < bounds.lanes * bounds.followers && endpoint.lanesLeft > 0
    }

    mutating func addFollower(_ version: Int64, _ lane: DeliveryLane) {
        lane.followers.append(version)
        followerCount += 1
        charge(lane)
    }

    mutating func takeFollower(_ lane: DeliveryLane) -> Int64? {
        guard let version = lane.followers.popFirst() else { return nil }
        followerCount -= 1
        charge(lane)
        return version
    }

    /// Has the head of a lane follow those that come before it.
    mutating func followHead(_ lane: DeliveryLane) {
        var followers = Queue<Int64>()
        var isIn = false
        lane.followers.forEach { version in
            if !isIn, version > lane.head {
                followers.append(lane.head)
                isIn = true
            }
            followers.append(version)
        }
        if !isIn { followers.append(lane.head) }
        lane.followers = followers
        followerCount += 1
        charge(lane)
    }

    /// Forgets what is behind the head.
    mutating func clear(_ lane: DeliveryLane) {
        followerCount -= lane.followers.count
        lane.followers = Queue()
        lane.leftOut = nil
        charge(lane)
    }

    /// A lane with more than its part counts as several.
    private mutating func charge(_ lane: DeliveryLane) {
        let count = max(1, (lane.followers.count + bounds.followers - 1) / bounds.followers)
        if count == lane.count { return }
        endpoint.changeLanes(by: count - lane.count)
        charged += count - lane.count
        lane.count = count
    }
}
