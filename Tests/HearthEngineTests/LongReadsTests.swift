import HearthModel
import HearthTestStores
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthEngine

/// Admission of long reads.
struct LongReadsTests {
    private func user(_ account: UInt64, _ connection: UInt64) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: false)
    }

    /// The admitted and the failed reads, in order.
    private final class Journal: Sendable {
        let entries = Mutex<[String]>([])
        let reads = Mutex<[LongRead]>([])

        func begin(_ name: String) -> @Sendable (Result<LongRead, Status>) -> Void {
            { result in
                switch result {
                case .success(let read):
                    self.entries.withLock { $0.append(name) }
                    self.reads.withLock { $0.append(read) }
                case .failure(let status): self.entries.withLock { $0.append("\(name): \(status.code)") }
                }
            }
        }

        var names: [String] { entries.withLock { $0 } }
        /// Ends the oldest read.
        func endFirst() { reads.withLock { $0.removeFirst() }.end() }
    }

    @Test func readsBeyondTheBoundWaitAndAreAdmittedRoundRobin() {
        let reads = LongReads(max: 2)
        let journal = Journal()
        for number in 0..<4 { reads.whenFree(for: user(1, 1), journal.begin("a\(number)")) }
        reads.whenFree(for: user(1, 2), journal.begin("b"))
        reads.whenFree(for: user(2, 3), journal.begin("c"))
        #expect(journal.names == ["a0", "a1"])
        #expect(reads.activeCount == 2 && reads.waitingCount == 4)
        #expect(reads.take() == nil)
        for _ in 0..<3 { journal.endFirst() }
        // The other account and the other connection aren't behind all of the first one's.
        #expect(Set(journal.names.dropFirst(2)) == ["a2", "b", "c"])
        journal.endFirst()
        #expect(journal.names.last == "a3")
        for _ in 0..<2 { journal.endFirst() }
        #expect(reads.activeCount == 0 && reads.waitingCount == 0)
        #expect(reads.take() != nil)
    }

    @Test func aDroppedReadIsReturned() {
        let reads = LongReads(max: 1)
        do {
            let read = reads.take()
            #expect(read != nil && reads.activeCount == 1)
            read?.end()
            read?.end()
            #expect(reads.activeCount == 0)
            _ = reads.take()
        }
        #expect(reads.activeCount == 0)
    }

    @Test func manyReleasesAtOnceEndWithoutDeepRecursion() {
        let reads = LongReads(max: 1)
        let first = reads.take()
        let count = Atomic(0)
        // Each is returned within the call that admits it.
        for number in 0..<5000 {
            reads.whenFree(for: user(1, UInt64(number))) { _ in count.add(1, ordering: .relaxed) }
        }
        first?.end()
        #expect(count.load(ordering: .relaxed) == 5000 && reads.activeCount == 0)
    }

    @Test func aCancelledReadIsNotAdmitted() {
        let reads = LongReads(max: 1)
        let journal = Journal()
        let first = reads.take()
        let requests = (0..<1000).map { reads.whenFree(for: user(1, 1), journal.begin("\($0)")) }
        for (number, request) in requests.enumerated() where number != 500 { request?.cancel() }
        #expect(reads.waitingCount == 1)
        requests[0]?.cancel()
        first?.end()
        #expect(journal.names == ["500"])
        journal.endFirst()
        #expect(reads.activeCount == 0 && reads.waitingCount == 0)
    }

    /// Also while most of the waiting ones have not been cancelled.
    @Test func cancelledReadsDoNotCountAgainstTheirAccount() {
        let reads = LongReads(max: 1, waitingMax: 1000, waitingShareMax: 40)
        let journal = Journal()
        reads.whenFree(for: user(9, 9), journal.begin("first"))
        for _ in 0..<40 { reads.whenFree(for: user(2, 2), journal.begin("other")) }
        for _ in 0..<3 {
            let waiting = (0..<40).compactMap { _ in reads.whenFree(for: user(1, 1), journal.begin("gone")) }
            #expect(waiting.count == 40)
            reads.whenFree(for: user(1, 3), journal.begin("over"))
            for request in waiting { request.cancel() }
        }
        #expect(
            journal.names == ["first", "over: resourceExhausted", "over: resourceExhausted", "over: resourceExhausted"])
        reads.whenFree(for: user(1, 3), journal.begin("now"))
        for _ in 0..<42 { journal.endFirst() }
        #expect(journal.names.count { $0 == "now" } == 1)
        #expect(journal.names.count { $0 == "other" } == 40)
        #expect(reads.activeCount == 0)
        #expect(reads.waitingCount == 0)
    }

    @Test func tooManyFailExceptForAdministrators() {
        let reads = LongReads(max: 1, waitingMax: 4, waitingShareMax: 2)
        let journal = Journal()
        let first = reads.take()
        for number in 0..<3 { reads.whenFree(for: user(1, 1), journal.begin("a\(number)")) }
        #expect(journal.names == ["a2: resourceExhausted"])
        for number in 0..<2 { reads.whenFree(for: user(2, 1), journal.begin("b\(number)")) }
        reads.whenFree(for: user(3, 1), journal.begin("c"))
        #expect(journal.names.last == "c: resourceExhausted")
        reads.whenFree(for: .administrator(connection: 9), journal.begin("admin"))
        #expect(reads.waitingCount == 5)
        reads.close()
        #expect(journal.names.filter { $0.hasSuffix(": unavailable") }.count == 5)
        reads.whenFree(for: user(1, 1), journal.begin("late"))
        #expect(journal.names.last == "late: unavailable")
        first?.end()
    }

    /// For any order of requests, ends and cancellations, a slot is given to one at a time and none is lost.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func slotsAreNeitherLostNorGivenTwice(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let max = Int.random(in: 1...5, using: &generator)
        let reads = LongReads(max: max)
        let journal = Journal()
        var requests: [LongReadRequest] = []
        for number in 0..<300 {
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                let requester = user(
                    UInt64.random(in: 0..<4, using: &generator), UInt64.random(in: 0..<3, using: &generator))
                if let request = reads.whenFree(for: requester, journal.begin("\(number)")) { requests.append(request) }
            case 2:
                if !requests.isEmpty {
                    requests.remove(at: Int.random(in: requests.indices, using: &generator)).cancel()
                }
            default: if journal.reads.withLock({ !$0.isEmpty }) { journal.endFirst() }
            }
            let active = journal.reads.withLock { $0.count }
            #expect(reads.activeCount == active && active <= max)
            #expect(reads.waitingCount == 0 || active == max, "seed \(seed): slots are free while some wait")
        }
        while journal.reads.withLock({ !$0.isEmpty }) { journal.endFirst() }
        #expect(reads.activeCount == 0 && reads.waitingCount == 0, "seed \(seed)")
    }
}
