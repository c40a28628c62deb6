import Testing

@testable import HearthConcurrency

@Suite("The time before the next attempt")
struct BackoffTests {
    /// The Realtime Database's client.
    private let reconnecting = Backoff.Policy(
        firstMilliseconds: 1_000, factor: 1.3, maxMilliseconds: 30_000, jitter: 0.3...1)
    /// Firestore's client.
    private let firestore = Backoff.Policy(
        firstMilliseconds: 1_000, factor: 1.5, maxMilliseconds: 60_000, jitter: 0.5...1.5)

    @Test func growsFromNothingToItsMaximum() {
        var backoff = Backoff(reconnecting)
        #expect(backoff.next(random: 0.5) == 0)
        #expect(backoff.next(random: 1) == 1_000)
        #expect(Int(backoff.next(random: 0)) == 390)
        for _ in 0..<30 { _ = backoff.next(random: 0.5) }
        #expect(backoff.next(random: 1) == 30_000)
        backoff.reset()
        #expect(backoff.next(random: 0.5) == 0)
        backoff.growToMax()
        #expect(backoff.next(random: 1) == 30_000)
    }

    @Test func isHalfMoreOrLessForFirestore() {
        var backoff = Backoff(firestore)
        let times = (0..<14).map { _ in backoff.next(random: 0.5) }
        #expect(Array(times.prefix(4)) == [0, 1_000, 1_500, 2_250])
        #expect(times.last == 60_000)
        #expect(backoff.next(random: 0) == 30_000)
        #expect(backoff.next(random: 1) == 90_000)
        backoff.reset()
        #expect(backoff.next(random: 0.9) == 0)
    }

    @Test func mayWaitBeforeTheFirstAttempt() {
        var backoff = Backoff(
            Backoff.Policy(
                firstMilliseconds: 1_000, factor: 2, maxMilliseconds: 30_000, jitter: 1...1, isFirstImmediate: false))
        let times = (0..<7).map { backoff.next(random: Double($0) / 6) }
        #expect(times == [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
        backoff.reset()
        #expect(backoff.next(random: 0) == 1_000)
    }
}
