/// Distinguishes a slow network from a peer that deliberately keeps a request open: a minimum of bytes per interval.
struct BodyProgress {
    private var since: UInt64
    private var bytes = 0

    init(now: UInt64) { since = now }

    mutating func received(_ count: Int, now: UInt64, limits: NetworkLimits) {
        bytes += count
        if bytes >= limits.bodyProgressBytesMin { wait(now: now) }
    }

    /// Begins a new interval: enough bytes have arrived, or the peer is not the cause of the delay.
    mutating func wait(now: UInt64) {
        bytes = 0
        since = now
    }

    func isTooSlow(now: UInt64, limits: NetworkLimits) -> Bool {
        now > since && now - since > UInt64(limits.bodyProgressMilliseconds) * 1_000_000
    }
}
