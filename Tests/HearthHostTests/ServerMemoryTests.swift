import HearthConcurrency
import HearthModel
import HearthDocuments
import Synchronization
import Testing

@testable import HearthHost

/// All kinds of use at the same time, within the limit of `docs/reference/abuse.md`.
@Suite struct ServerMemoryTests {
    private let memory = ServerMemory()

    private var budgets: [MemoryBudget] {
        [
            memory.received, memory.unread, memory.sorting, memory.listening, memory.listenersWaiting, memory.windows,
            memory.unacknowledged, memory.databases.readSets, memory.databases.commits,
        ]
    }

    /// Connections of every kind that use all of their memory, round-robin.
    private func fillAll(connections: Int, step: Int) -> [MemoryReservation] {
        let held = budgets.flatMap { budget in
            (0..<connections).map { number in
                budget.reservation(for: Requester(account: 1, connection: UInt64(number), isAdministrator: false))
            }
        }
        var isGrowing = true
        while isGrowing {
            isGrowing = false
            for one in held where one.grow(by: step) { isGrowing = true }
        }
        return held
    }

    @Test(arguments: [(1, 1 << 20), (40, 256 << 10), (400, 16 << 10)])
    func allKindsTogetherAreBoundedAndEachServesWhoeverWantsLittle(connections: Int, step: Int) {
        let held = fillAll(connections: connections, step: step)
        let owners = budgets.map { $0.reservation(for: .administrator(connection: 1)) }
        for one in owners { while one.grow(by: 1 << 20) {} }
        let own =
            Limits.receivedOwnBytes + Limits.listeningOwnBytes + Limits.sortingOwnBytes + Limits.readSetOwnBytes
            + Limits.commitsWaitingOwnBytes + 4 * Limits.otherOwnBytes
        let used = budgets.reduce(0) { $0 + $1.usedBytes }
        #expect(used <= own + Limits.pooledBytesMax)
        #expect(memory.pool.usedBytes <= Limits.pooledBytesMax)
        for one in owners { one.resize(to: 0) }
        for budget in budgets {
            let other = budget.reservation(for: Requester(account: 2, connection: 9, isAdministrator: false))
            #expect(other.grow(by: Limits.commitWaitingBytes))
            // Another connection of the same account too.
            let another = budget.reservation(for: Requester(account: 1, connection: 5000, isAdministrator: false))
            #expect(another.grow(by: Limits.commitWaitingBytes))
        }
        for one in held { one.resize(to: 0) }
        #expect(memory.pool.usedBytes == 0)
    }

    @Test func requestsInProgressDoNotWaitForMemoryOfOthers() {
        let held = fillAll(connections: 40, step: 256 << 10)
        #expect(memory.pool.isTight)
        let granted = Atomic(0)
        let requester = Requester(account: 2, connection: 9, isAdministrator: false)
        for _ in 0..<100 {
            memory.working.take(30 << 20, for: requester) { share in
                granted.add(1, ordering: .relaxed)
                share.end()
            }
            memory.working.take(1 << 20, for: requester) { share in
                granted.add(1, ordering: .relaxed)
                share.end()
            }
        }
        #expect(granted.load(ordering: .relaxed) == 200)
        #expect(memory.working.usedBytes == 0)
        _ = held
    }
}
