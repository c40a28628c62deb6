import HearthConcurrency
import HearthHost
import HearthModel
import Synchronization

/// What became of the events of each trigger since the start: counters for administrators and `/metrics`, and records of the
/// log when a trigger begins to fail and when it works again.
package final class TriggerJournal: EventObserver {
    package struct Figures: Sendable {
        package var delivered = 0
        package var dropped = 0
        package var dead = 0
        package var attemptsOK = 0
        package var attemptsStatus = 0
        package var attemptsTimeout = 0
        package var attemptsUnreachable = 0
        /// The last failure; nil after a success.
        package var failure: DeliveryFailure?
        package var lastError: (time: Timestamp, failure: DeliveryFailure)?
        /// How long events took from the commit to the acknowledgement: counts up to each of `bounds`, and the sum.
        package var delivery = [Int](repeating: 0, count: TriggerJournal.boundsSeconds.count + 1)
        package var deliverySeconds = 0.0
        fileprivate var absence = EndpointAbsence()
        fileprivate var reports = FailureReports()

        package var failedAttempts: Int { attemptsStatus + attemptsTimeout + attemptsUnreachable }
    }

    package static let boundsSeconds: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3600,
    ]

    private let log: Log
    private let clock: any Clock
    /// Of the triggers that exist.
    private let figures = Mutex<[TriggerID: Figures]>([:])

    init(log: Log, clock: any Clock) {
        self.log = log
        self.clock = clock
    }

    package func figures(_ id: TriggerID) -> Figures { figures.withLock { $0[id] ?? Figures() } }

    /// A trigger exists; it keeps the figures that it has.
    func begin(_ id: TriggerID) { figures.withLock { $0[id] = $0[id] ?? Figures() } }
    func end(_ id: TriggerID) { figures.withLock { $0[id] = nil } }

    private let noteGone = Mutex<(@Sendable (_ trigger: String, _ revision: UInt64) -> Void)?>(nil)

    /// - Parameter gone: called when an endpoint does not exist any more, with the definition that it was called for: see
    ///   `EndpointAbsence`.
    func notify(gone: @escaping @Sendable (_ trigger: String, _ revision: UInt64) -> Void) {
        noteGone.withLock { $0 = gone }
    }

    // MARK: EventObserver

    package func answered(_ id: EventDispatcher.RouteID, _ event: Delivery.Event, _ answer: Delivery.Answer) {
        let (now, monotonic) = (clock.now(), clock.monotonicNanoseconds())
        let change = figures.withLock { figures -> Change in
            // What ends late of a trigger that is gone counts for nothing.
            guard var known = figures[id.triggerID] else { return .none }
            defer { figures[id.triggerID] = known }
            return Self.note(answer, now, monotonic, &known)
        }
        switch change {
        case .failing(let failure):
            log.warning(
                "a trigger's events can't be delivered", ("trigger", .string(id.trigger)),
                ("status", .string(failure.status)), ("reason", .string(failure.reason)))
        case .recovered: log.info("a trigger's events are delivered again", ("trigger", .string(id.trigger)))
        case .none: break
        }
    }

    package func responded(_ id: EventDispatcher.RouteID, _ revision: UInt64, isMissing: Bool) {
        let now = clock.monotonicNanoseconds()
        let isGone = figures.withLock { figures in
            figures[id.triggerID]?.absence.isGone(revision, isMissing: isMissing, now) ?? false
        }
        if isGone { noteGone.withLock { $0 }?(id.trigger, revision) }
    }

    private enum Change {
        case none
        case failing(DeliveryFailure)
        case recovered
    }

    private static func note(
        _ answer: Delivery.Answer, _ now: Timestamp, _ monotonic: UInt64, _ figures: inout Figures
    ) -> Change {
        let failure: DeliveryFailure
        switch answer {
        case .acknowledged:
            figures.attemptsOK += 1
            figures.failure = nil
            return figures.reports.succeeded() ? .recovered : .none
        case .failed(let reason, _), .unreachable(let reason): failure = reason
        case .unsent, .impossible, .gone: return .none
        }
        switch failure.kind {
        case .status, .cut: figures.attemptsStatus += 1
        case .timeout: figures.attemptsTimeout += 1
        case .unreachable: figures.attemptsUnreachable += 1
        }
        figures.lastError = (now, failure)
        figures.failure = failure
        return figures.reports.failed(monotonic) ? .failing(failure) : .none
    }

    package func settled(_ id: EventDispatcher.RouteID, _ settled: Delivery.Settled) {
        let now = clock.now()
        figures.withLock { figures in
            guard var known = figures[id.triggerID] else { return }
            Self.note(settled, now, &known)
            figures[id.triggerID] = known
        }
        if case .dead(let attempts, let failure) = settled.result {
            log.warning(
                "an event became a dead letter", ("trigger", .string(id.trigger)), ("database", .string(id.database)),
                ("attempts", .integer(attempts)), ("status", .string(failure.status)),
                ("reason", .string(failure.reason)))
        }
    }

    private static func note(_ settled: Delivery.Settled, _ now: Timestamp, _ figures: inout Figures) {
        switch settled.result {
        case .delivered:
            figures.delivered += 1
            let seconds = Double(max(0, now.microseconds - settled.event.version)) / 1e6
            let index = boundsSeconds.firstIndex { seconds <= $0 } ?? boundsSeconds.count
            figures.delivery[index] += 1
            figures.deliverySeconds += seconds
        case .dropped: figures.dropped += 1
        case .dead: figures.dead += 1
        case .gone: break
        }
    }
}

/// Whether the log has that a trigger fails. A function that fails for some events and takes others between them begins
/// to fail thousands of times a second: that is reported once in a while.
struct FailureReports: Sendable {
    private var isReported = false
    private var nextAt: UInt64 = 0
    static let pauseNanoseconds: UInt64 = 10_000_000_000

    /// - Returns: whether it is to be reported.
    mutating func failed(_ now: UInt64) -> Bool {
        if isReported || now < nextAt { return false }
        isReported = true
        nextAt = now + Self.pauseNanoseconds
        return true
    }

    /// - Returns: whether it is to be reported that it works again.
    mutating func succeeded() -> Bool {
        defer { isReported = false }
        return isReported
    }
}

/// Since when an endpoint says that it does not exist (404), and nothing else. The functions emulator of Firebase's tools knows a
/// function only until it is loaded anew, and around a registration it may answer with 404, too: what is missing still is after
/// a while is gone.
struct EndpointAbsence: Sendable {
    private var known: (revision: UInt64, since: UInt64)?
    /// It is gone so long afterwards, if that is not so long ago that it may have been there meanwhile. An event's five attempts
    /// take about three seconds.
    private static let nanoseconds: Range<UInt64> = 2_000_000_000..<60_000_000_000

    /// Notes an answer.
    /// - Parameter revision: of the definition for which it came.
    mutating func isGone(_ revision: UInt64, isMissing: Bool, _ now: UInt64) -> Bool {
        if !isMissing {
            known = nil
            return false
        }
        guard let known, known.revision == revision, now - known.since < Self.nanoseconds.upperBound else {
            known = (revision, now)
            return false
        }
        if now - known.since < Self.nanoseconds.lowerBound { return false }
        self.known = nil
        return true
    }
}
