import HearthConcurrency
import Synchronization
import Testing

@testable import HearthEngine

struct ApplicationPaceTests {
    /// A rest is as long as the work before it, but work that had to wait itself isn't followed by a long one.
    @Test func restsAreNoLongerThanTheirBound() {
        let rests = Rests()
        var pace = ApplicationPace({ rests.note($0) }, isUrgent: { false })
        while rests.all.count < 3 { pace.step() }
        let end = MonotonicTime.now.advanced(milliseconds: 5)
        while MonotonicTime.now < end {}
        for _ in 0..<16 { pace.step() }
        #expect(rests.all.count == 4 && rests.all.last == 1000)
        #expect(rests.all.allSatisfy { 300...1000 ~= $0 })
    }

    @Test func urgentWorkHasNoRests() {
        let rests = Rests()
        var pace = ApplicationPace({ rests.note($0) }, isUrgent: { true })
        let end = MonotonicTime.now.advanced(milliseconds: 5)
        while MonotonicTime.now < end { pace.step() }
        #expect(rests.all.isEmpty && pace.restedNanoseconds == 0)
    }

    private final class Rests: Sendable {
        private let found = Mutex<[Int]>([])
        var all: [Int] { found.withLock { $0 } }
        func note(_ microseconds: Int) { found.withLock { $0.append(microseconds) } }
    }
}
