import HearthConcurrency
import HearthModel
import Synchronization
import Testing

@testable import HearthHost

@Suite("Memory of other requests in progress")
struct CommonWorkingMemoryTests {
    private let memory = CommonWorkingMemory(bytesMax: 24 << 20)

    /// Belongs to its test.
    private final class Shares: Sendable {
        private let shares = Mutex<[WorkingShare]>([])
        func add(_ share: WorkingShare) { shares.withLock { $0.append(share) } }
        var count: Int { shares.withLock { $0.count } }
        /// Ends the share at an index modulo their number.
        func end(_ index: Int) {
            let share = shares.withLock { $0.isEmpty ? nil : $0.remove(at: index % $0.count) }
            share?.end()
        }
    }

    private func client(_ account: UInt64, _ connection: UInt64) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: false)
    }

    @Test("is not taken by requests that become large, nor do others wait for theirs")
    func large() {
        let working = WorkingMemory(largeBytesMax: 56 << 20, commonBytesMax: 24 << 20)
        let shares = Shares()
        // Two users, who write again and again what becomes larger than all of the memory.
        for number in 0..<10 { working.take(128 << 20, for: client(UInt64(number % 2), 0)) { shares.add($0) } }
        #expect(shares.count == 1 && working.waitingCount == 9)
        for bytes in [16 << 10, 340 << 10, 2 << 20] {
            let share = working.takeNow(bytes, for: client(9, 9))
            #expect(share != nil)
        }
        for _ in 0..<10 { shares.end(0) }
        #expect(working.usedBytes == 0 && working.waitingCount == 0)
    }

    @Test("is left to others, however much of it one account wants", arguments: [1, 1_000])
    func accounts(connections: Int) {
        let shares = Shares()
        for number in 0..<10_000 {
            memory.take(250 << 10, for: client(1, UInt64(number % connections))) { shares.add($0) }
        }
        #expect(memory.usedBytes <= memory.bytesMax * 2 / 5)
        #expect(memory.waitingCount > 9_000)
        // Those of other accounts, and small ones of its other connections, do not wait behind them.
        for number in 0..<20 {
            memory.take(100 << 10, for: client(2, UInt64(number))) { $0.end() }
            let other = memory.takeNow(1 << 20, for: client(UInt64(3 + number), 0))
            #expect(other != nil)
            let same = memory.takeNow(100 << 10, for: client(1, 5_000))
            #expect(same != nil)
        }
        #expect(memory.waitingCount == 10_000 - shares.count)
        while shares.count > 0 { shares.end(0) }
        #expect(memory.usedBytes == 0 && memory.waitingCount == 0)
    }

    @Test("is left to a small request by many accounts that each take what they get")
    func manyAccounts() {
        var shares: [WorkingShare] = []
        for account in 0..<100 {
            while let share = memory.takeNow(250 << 10, for: client(UInt64(account), 0)) { shares.append(share) }
        }
        let small = memory.takeNow(100 << 10, for: client(1_000, 0))
        #expect(small != nil)
        #expect(memory.usedBytes <= memory.bytesMax)
    }

    @Test("is given in the end to each request that waits, however they end", arguments: [1, 2, 3] as [UInt64])
    func random(seed: UInt64) {
        var random = SplitMix(state: seed)
        let shares = Shares()
        var asked = 0
        let count = Mutex(0)
        for _ in 0..<20_000 {
            let requester = client(random.next(below: 6), random.next(below: 4))
            let bytes = 1 << (11 + Int(random.next(below: 11)))
            let isBrief = random.next(below: 4) == 0
            memory.take(bytes, for: requester) { share in
                count.withLock { $0 += 1 }
                // One that is cancelled meanwhile ends within the call.
                if isBrief { share.end() } else { shares.add(share) }
            }
            asked += 1
            while random.next(below: 5) > 2 { shares.end(Int(random.next(below: 1 << 20))) }
            #expect(memory.usedBytes <= memory.bytesMax)
        }
        while shares.count > 0 { shares.end(0) }
        #expect(count.withLock { $0 } == asked, "seed \(seed)")
        #expect(memory.usedBytes == 0 && memory.waitingCount == 0)
    }

    private struct SplitMix {
        var state: UInt64

        mutating func next(below bound: UInt64) -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return (mixed ^ (mixed >> 31)) % bound
        }
    }
}
