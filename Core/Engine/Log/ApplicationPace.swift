import HearthConcurrency

/// Spreads an application over time, while nobody waits for its end: on a machine with few cores, a thread that works
/// for long without a pause delays commits by the scheduler's time slices.
struct ApplicationPace {
    /// Far less than a time slice of the scheduler.
    private static let workNanoseconds: Int64 = 300_000
    /// As many times as the work took.
    static let restTimes: Int64 = 1
    /// Work that took longer has waited, for the disk or for a core.
    private static let restNanosecondsMax: Int64 = 1_000_000
    /// The clock is read once for so many entries.
    private static let entriesBetweenLooks = 16

    private let rest: @Sendable (_ microseconds: Int) -> Void
    private let isUrgent: () -> Bool
    private(set) var restedNanoseconds: Int64 = 0
    private var since = MonotonicTime.now
    private var entries = 0

    /// - Parameter isUrgent: whether a rest would delay others.
    init(_ rest: @escaping @Sendable (_ microseconds: Int) -> Void, isUrgent: @escaping () -> Bool) {
        self.rest = rest
        self.isUrgent = isUrgent
    }

    /// After each entry.
    mutating func step() {
        entries += 1
        if entries % Self.entriesBetweenLooks == 0 { look() }
    }

    /// After a longer piece of work.
    mutating func look() {
        let worked = MonotonicTime.now.nanoseconds - since.nanoseconds
        if worked < Self.workNanoseconds { return }
        since = .now
        if isUrgent() { return }
        rest(Int(min(worked * Self.restTimes, Self.restNanosecondsMax) / 1000))
        let end = MonotonicTime.now
        restedNanoseconds += end.nanoseconds - since.nanoseconds
        since = end
    }
}
