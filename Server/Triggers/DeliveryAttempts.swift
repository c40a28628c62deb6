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

/// The attempts of events that are, or were, in no lane, by a hash of the event: what counts for the next attempt, and of
/// the last failure its kind. An event keeps its entry until it is settled, so that it can be parked again. 24 bytes each,
/// in a table that is half full, and the document's hash in `DeliveryParking`.
struct DeliveryAttemptTable {
    private struct Entry {
        var deadline: UInt64
        var count: UInt32
        /// Attempts that the next pause depends on; pauses are the longest long before these are too many.
        var unpardoned: UInt16
        /// A status, or one of the numbers below.
        var kind: UInt16

        static let timeout: UInt16 = 0
        static let cut: UInt16 = 1
        static let unreachable: UInt16 = 2
    }

    private var entries: [UInt64: Entry] = [:]
    private let countMax: Int
    private let endpoint: DeliveryEndpoint
    /// As how many it counts, for the endpoint.
    private var charged = 0

    init(countMax: Int, _ endpoint: DeliveryEndpoint) {
        self.countMax = countMax
        self.endpoint = endpoint
    }

    var count: Int { entries.count }
    /// Whether another event may have an entry.
    var hasSpace: Bool { entries.count < countMax && endpoint.mayRemember }

    /// - Returns: false when there are too many.
    mutating func insert(_ attempts: DeliveryAttempts, of event: Delivery.Event) -> Bool {
        let hash = Self.hash(event)
        if !hasSpace, entries[hash] == nil { return false }
        entries[hash] = Entry(
            deadline: attempts.deadline, count: UInt32(clamping: attempts.count),
            unpardoned: UInt16(clamping: attempts.count - attempts.pardoned), kind: Self.kind(attempts.failure))
        charge()
        return true
    }

    /// The event is settled.
    mutating func remove(_ event: Delivery.Event) {
        if entries.isEmpty || entries.removeValue(forKey: Self.hash(event)) == nil { return }
        shrink()
        charge()
    }

    /// None when none are known.
    subscript(event: Delivery.Event) -> DeliveryAttempts {
        guard !entries.isEmpty, let entry = entries[Self.hash(event)] else { return DeliveryAttempts() }
        let count = Int(entry.count)
        return DeliveryAttempts(
            count: count, pardoned: count - Int(entry.unpardoned), failure: Self.failure(entry.kind),
            deadline: entry.deadline)
    }

    /// The next ones may be made at once, and pauses begin anew.
    mutating func pardon() {
        entries = entries.mapValues { entry in
            Entry(deadline: 0, count: entry.count, unpardoned: 0, kind: entry.kind)
        }
    }

    mutating func removeAll() {
        entries = [:]
        charge()
    }

    /// Dictionaries keep their memory.
    private mutating func shrink() {
        if entries.capacity < 1024 || entries.count * 8 > entries.capacity { return }
        var fewer = [UInt64: Entry](minimumCapacity: entries.count * 2)
        for (hash, entry) in entries { fewer[hash] = entry }
        entries = fewer
    }

    private mutating func charge() {
        endpoint.changeAttempts(by: entries.count - charged)
        charged = entries.count
    }

    private static func hash(_ event: Delivery.Event) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(event.version)
        event.key.withUnsafeBytes { hasher.combine(bytes: $0) }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    private static func kind(_ failure: DeliveryFailure?) -> UInt16 {
        switch failure?.kind {
        case .status(let status): UInt16(clamping: status)
        case .timeout: Entry.timeout
        case .cut: Entry.cut
        case .unreachable, nil: Entry.unreachable
        }
    }

    /// The failure without the endpoint's words.
    private static func failure(_ kind: UInt16) -> DeliveryFailure {
        switch kind {
        case Entry.timeout: DeliveryFailure(.timeout, "The endpoint did not answer in time.")
        case Entry.cut: DeliveryFailure(.cut, "The endpoint's answer was not complete.")
        case Entry.unreachable: DeliveryFailure(.unreachable, "The endpoint could not be reached.")
        default: DeliveryFailure(.status(Int(kind)), "The endpoint answered \(kind).")
        }
    }
}
