/// A token bucket: a burst of events at once, and a rate per second on average. Pure; the time is a parameter.
struct RateLimiter {
    private let burstMax: Double
    private let perNanosecond: Double
    private var level = 0.0
    private var checkedAt: UInt64

    init(burstMax: Int, perSecondMax: Int, now: UInt64) {
        self.burstMax = Double(burstMax)
        perNanosecond = Double(perSecondMax) / 1_000_000_000
        checkedAt = now
    }

    /// An event that compensates an earlier one.
    mutating func credit() { level = max(0, level - 1) }

    /// Counts one event; false when it exceeds the limit.
    mutating func admit(now: UInt64) -> Bool {
        if now > checkedAt {
            level = max(0, level - Double(now - checkedAt) * perNanosecond)
            checkedAt = now
        }
        level += 1
        return level <= burstMax
    }
}
