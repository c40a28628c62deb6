/// Documents (or locations) that have failed and are not in memory, because too many wait for another attempt: of each there is a
/// hash, so that its events are passed over when the queue is read on. What is known of the attempts of the first of them is in
/// a `DeliveryAttemptTable`.
///
/// When one is due, the queue is read again from the first of their events on, in a *round*: an event that is due gets a lane,
/// which gathers those behind it as the round comes by; one that is not due stays. A document is looked at once in a round, with
/// its first event, so that no later one is sent before it. A round ends where the queue is read to, and what gets there has
/// all of its events. Reading on goes on beside it, and passes over what the round is still to come by.
///
/// Two documents with the same hash are as one here: one may wait for the other's time, and each keeps its order.
struct DeliveryParking {
    /// A reading of the parked documents.
    struct Round {
        var after: Delivery.Event
        let beganAt: UInt64
        fileprivate(set) var count = 0
        /// Of those that stay.
        fileprivate var first = Int64.max
        fileprivate var dueAt = UInt64.max
    }

    /// What a round does with an event that is in no lane.
    enum Meeting {
        /// It is not parked.
        case unknown
        /// It stays, since an earlier one of the document does.
        case stays
        /// It is the first one, or follows what was sent.
        case isNext
    }

    /// Those that the round is still to come by; all of them between two rounds.
    private var waiting: Set<UInt64> = []
    /// Those that stay until the next round, and those that got a lane in this one.
    private var staying: Set<UInt64> = []
    private var taken: Set<UInt64> = []
    /// No version of a parked event is smaller.
    private(set) var first = Int64.max
    private var dueAt = UInt64.max
    /// No round begins before, so that readings take a part of the time only.
    private var nextAt: UInt64 = 0
    private var isUrgent = false
    private(set) var round: Round?
    /// Of the round, or of the last one.
    private(set) var roundNumber = 0

    /// Between the end of a round and the next one: at least so long, and for each event that was read about ten times of what it took.
    private static let pauseMin: UInt64 = 1_000_000_000
    private static let pauseOfEvent: UInt64 = 50_000
    /// A round that takes longer does not wait for the endpoint when there are events that are too old.
    static let slowRoundNanoseconds: UInt64 = 60_000_000_000
    /// Read at once.
    static let roundCount = 1024

    var isEmpty: Bool { waiting.isEmpty && staying.isEmpty && taken.isEmpty }

    /// Whether events of a document are passed over, unless it has a lane.
    func contains(_ document: UInt64) -> Bool {
        waiting.contains(document) || staying.contains(document) || taken.contains(document)
    }

    /// Whether the round is still to come by events of a lane.
    func isGathering(_ lane: DeliveryLane) -> Bool { round != nil && lane.round == roundNumber }

    /// - Parameters:
    ///   - version: of its first event.
    ///   - deadline: when that may be sent again.
    mutating func insert(_ document: UInt64, _ version: Int64, deadline: UInt64) {
        if round != nil { return stay(document, version, deadline: deadline) }
        waiting.insert(document)
        first = min(first, version)
        dueAt = min(dueAt, deadline)
    }

    /// All are due.
    mutating func retry() {
        dueAt = 0
        nextAt = 0
        isUrgent = round != nil
    }

    mutating func removeAll() {
        let number = roundNumber
        self = DeliveryParking()
        roundNumber = number
    }

    // MARK: Rounds

    /// When the next round begins; nil while there is one.
    /// - Parameter expired: an event of a commit before this version does not wait for its time.
    func roundTime(expired: Int64) -> UInt64? {
        if round != nil || waiting.isEmpty { return nil }
        return max(nextAt, first < expired ? 0 : dueAt)
    }

    mutating func beginRound(_ now: UInt64) {
        roundNumber += 1
        round = Round(after: Delivery.Event(version: first, key: []), beganAt: now)
    }

    /// - Parameter event: is read next; all before it were.
    mutating func advance(to event: Delivery.Event) {
        round?.after = event
        round?.count += 1
    }

    mutating func meet(_ document: UInt64, _ version: Int64) -> Meeting {
        if waiting.contains(document) || taken.contains(document) { return .isNext }
        guard staying.contains(document) else { return .unknown }
        if let round { self.round?.first = min(round.first, version) }
        return .stays
    }

    /// A document that was met gets a lane, or its event is settled.
    mutating func take(_ document: UInt64) {
        waiting.remove(document)
        taken.insert(document)
    }

    /// A document stays until the next round.
    mutating func stay(_ document: UInt64, _ version: Int64, deadline: UInt64) {
        waiting.remove(document)
        taken.remove(document)
        staying.insert(document)
        guard var round else { return }
        round.first = min(round.first, version)
        round.dueAt = min(round.dueAt, deadline)
        self.round = round
    }

    /// Those that it didn't come by are not in the queue any more.
    mutating func endRound(_ now: UInt64) {
        guard let round else { return }
        waiting = staying
        staying = []
        taken = []
        first = round.first
        dueAt = isUrgent ? 0 : round.dueAt
        nextAt = isUrgent ? 0 : now + max(Self.pauseMin, UInt64(round.count) * Self.pauseOfEvent)
        isUrgent = false
        self.round = nil
    }
}
