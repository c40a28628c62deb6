/// How long to wait before the next attempt at something that failed: longer each time, up to a bound, and by chance a
/// little more or less, so that many clients do not come back at the same moment. Pure: the random number is a parameter.
package struct Backoff: Sendable {
    package struct Policy: Sendable {
        /// The first time that is waited.
        package var firstMilliseconds: Double
        /// What the time is multiplied by for each further attempt.
        package var factor: Double
        package var maxMilliseconds: Double
        /// The part of the time that is waited is between these two; `1...1` for no randomness.
        package var jitter: ClosedRange<Double>
        /// Whether the first attempt does not wait; the second then waits `firstMilliseconds`.
        package var isFirstImmediate: Bool

        package init(
            firstMilliseconds: Double, factor: Double, maxMilliseconds: Double, jitter: ClosedRange<Double>,
            isFirstImmediate: Bool = true
        ) {
            self.firstMilliseconds = firstMilliseconds
            self.factor = factor
            self.maxMilliseconds = maxMilliseconds
            self.jitter = jitter
            self.isFirstImmediate = isFirstImmediate
        }
    }

    package let policy: Policy
    /// What the next attempt waits, before the jitter; 0: it is made at once.
    private var currentMilliseconds: Double

    package init(_ policy: Policy) {
        self.policy = policy
        currentMilliseconds = policy.isFirstImmediate ? 0 : policy.firstMilliseconds
    }

    /// The time to wait before the next attempt, in milliseconds. The one after it waits longer.
    /// - Parameter random: at least 0, at most 1.
    package mutating func next(random: Double) -> Double {
        let share = policy.jitter.lowerBound + (policy.jitter.upperBound - policy.jitter.lowerBound) * random
        let milliseconds = currentMilliseconds * share
        currentMilliseconds = min(
            max(currentMilliseconds * policy.factor, policy.firstMilliseconds), policy.maxMilliseconds)
        return milliseconds
    }

    /// An attempt succeeded, or there is a reason to believe that the next one will.
    package mutating func reset() { self = Backoff(policy) }

    /// The peer asked for patience, or refuses whatever is tried: the next attempt waits as long as any.
    package mutating func growToMax() { currentMilliseconds = policy.maxMilliseconds }
}
