import Testing

@testable import HearthConcurrency

@Suite("A heap of timers")
struct TimerHeapTests {
    private final class Timer: HeapTimer {
        let deadline: UInt64
        var heapIndex = -1
        init(_ deadline: UInt64) { self.deadline = deadline }
    }

    @Test func givesTimersBackInOrderAndForgetsCancelledOnes() {
        var heap = TimerHeap<Timer>()
        var random = SystemRandomNumberGenerator()
        var timers: [Timer] = []
        for _ in 0..<500 {
            let timer = Timer(.random(in: 0..<1_000, using: &random))
            timers.append(timer)
            heap.insert(timer)
        }
        for timer in timers.prefix(250) { heap.remove(timer) }
        heap.remove(timers[0])
        var deadlines: [UInt64] = []
        while let timer = heap.popDue(2_000) { deadlines.append(timer.deadline) }
        #expect(deadlines == timers.dropFirst(250).map(\.deadline).sorted())
    }

    @Test func givesOnlyTimersWhoseTimeHasCome() {
        var heap = TimerHeap<Timer>()
        let timers = (0..<500).map { Timer(UInt64($0 * 7_919 % 500)) }
        for timer in timers { heap.insert(timer) }
        for (number, timer) in timers.enumerated() where number % 3 == 0 { heap.remove(timer) }
        var seen: [UInt64] = []
        while let timer = heap.popDue(250) { seen.append(timer.deadline) }
        #expect(seen == seen.sorted() && seen.allSatisfy { $0 <= 250 } && seen.count > 100)
        while let timer = heap.popDue(1_000) { seen.append(timer.deadline) }
        #expect(seen == seen.sorted() && seen.count == 333)
        #expect(heap.count == 0 && heap.earliestDeadline == nil)
    }

    @Test func isEmptyAfterRemovingAll() {
        var heap = TimerHeap<Timer>()
        let timers = [3, 1, 2].map(Timer.init)
        for timer in timers { heap.insert(timer) }
        #expect(heap.earliestDeadline == 1)
        #expect(Set(heap.removeAll().map(\.deadline)) == [1, 2, 3])
        #expect(timers.allSatisfy { $0.heapIndex == -1 })
        heap.remove(timers[0])
        heap.insert(timers[0])
        #expect(heap.popDue(3) === timers[0] && heap.count == 0)
    }
}
