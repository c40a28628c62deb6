/// How long to wait before the next attempt to connect: not at all, then a second, growing to half a minute.
/// Source: the SDKs for Apple platforms.
struct WireBackoff {
    private static let firstMilliseconds = 1_000.0
    private static let maxMilliseconds = 30_000.0
    private static let growth = 1.3
    /// The part of the time that is random, so that many clients don't come back at once.
    private static let jitter = 0.7

    private var current: Double?

    /// - Parameter random: at least 0, below 1.
    mutating func next(random: Double) -> Int {
        guard let milliseconds = current else {
            current = Self.firstMilliseconds
            return 0
        }
        current = min(milliseconds * Self.growth, Self.maxMilliseconds)
        return Int(milliseconds * (1 - Self.jitter + Self.jitter * random))
    }

    /// The next attempt is made at once.
    mutating func reset() { current = nil }

    /// The server refuses what we have to say: it is no use to hurry.
    mutating func growToMax() { current = Self.maxMilliseconds }
}
