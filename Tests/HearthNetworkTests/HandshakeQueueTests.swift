import Testing

@testable import HearthNetwork

@Suite struct HandshakeQueueTests {
    private func queue(_ entries: [(number: UInt64, owner: UInt64)]) -> HandshakeQueue<UInt64> {
        var queue = HandshakeQueue<UInt64>()
        for (number, owner) in entries { queue.push(number, number: number, owner: owner) }
        return queue
    }

    private func order(_ queue: HandshakeQueue<UInt64>) -> [UInt64] {
        var queue = queue
        var order: [UInt64] = []
        while let next = queue.pop() { order.append(next) }
        #expect(queue.isEmpty && queue.count == 0)
        return order
    }

    @Test func theNewestOfAnOwnerIsFirst() {
        #expect(order(queue([(1, 7), (2, 7), (3, 7)])) == [3, 2, 1])
    }

    @Test func ownersAreServedInRotation() {
        #expect(order(queue([(1, 7), (2, 7), (3, 7), (4, 8), (5, 9)])) == [3, 4, 5, 2, 1])
    }

    @Test func ownersThatMayHaveNoMoreAreSkippedAndStay() {
        var waiting = queue([(1, 7), (2, 7), (3, 8)])
        #expect(waiting.pop { $0 != 7 } == 3)
        #expect(waiting.pop { $0 != 7 } == nil)
        #expect(order(waiting) == [2, 1])
    }

    @Test func removedElementsAreSkipped() {
        var waiting = queue([(1, 7), (2, 7), (3, 7), (4, 8)])
        for number: UInt64 in [3, 4, 99, 3] { waiting.remove(number: number) }
        #expect(waiting.count == 2)
        #expect(order(waiting) == [2, 1])
    }

    @Test func anOwnerThatReturnsIsInTheRotationOnce() {
        var waiting = queue([(1, 7), (2, 8)])
        waiting.remove(number: 1)
        for number: UInt64 in 3...5 { waiting.push(number, number: number, owner: 7) }
        waiting.push(6, number: 6, owner: 8)
        #expect(order(waiting) == [5, 6, 4, 2, 3])
    }

    /// What is removed and never taken leaves nothing behind.
    @Test func removedElementsTakeNoMemory() {
        var waiting = queue([(0, 7)])
        for number: UInt64 in 1...10_000 {
            waiting.push(number, number: number, owner: 7)
            waiting.remove(number: number)
        }
        #expect(waiting.keptNumbers <= 2 + 64)
        #expect(order(waiting) == [0])
    }
}
