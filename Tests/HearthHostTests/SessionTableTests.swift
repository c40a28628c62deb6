import HearthModel
import HearthTestSupport
import Testing

@testable import HearthHost

@Suite struct SessionTableTests {
    private let attacker = Requester.nobody(at: "192.0.2.1:5000", connection: 1)
    private let neighbour = Requester.nobody(at: "192.0.2.1:5001", connection: 2)
    private let user = Requester.user("ann", connection: 3)
    private let owner = Requester.administrator(connection: 4)

    private func table(_ count: Int, _ requester: Requester, _ rank: SessionRank) -> SessionTable<Int> {
        let table = SessionTable<Int>(sessionsMax: count)
        for number in 0..<count {
            #expect(dropped(table.add(number, id: "\(number)", for: requester, rank: rank)) == .none)
        }
        return table
    }

    /// The evicted session; nil for none, and -1 for a rejection.
    private func dropped(_ admission: SessionTable<Int>.Admission) -> Int? {
        if case .admitted(let dropped) = admission { dropped } else { -1 }
    }

    @Test func theOldestBareSessionOfTheLargestAccountIsEvicted() {
        let table = table(100, attacker, .bare)
        #expect(dropped(table.add(100, id: "100", for: user)) == 0)
        #expect(dropped(table.add(101, id: "101", for: neighbour)) == 1)
        #expect(table["0"] == nil && table["100"] == 100 && table.count == 100)
        // A flood only evicts its own sessions.
        for number in 200..<1000 {
            let evicted = dropped(table.add(number, id: "\(number)", for: attacker)) ?? -1
            #expect(evicted != 100 && evicted != 101 && evicted >= 0)
        }
        #expect(table["100"] == 100 && table["101"] == 101)
    }

    @Test func sessionsInUseAreEvictedForAccountsAndConnectionsThatHaveFewer() {
        for rank in [SessionRank.unattended, .attended] {
            let table = table(10, attacker, rank)
            #expect(dropped(table.add(10, id: "10", for: user, rank: rank)) == 0)
            #expect(dropped(table.add(11, id: "11", for: neighbour, rank: rank)) == 1)
            #expect(dropped(table.add(12, id: "12", for: owner, rank: rank)) == 2)
        }
    }

    @Test func theLargestAccountIsRejectedWhenAllSessionsAreInUse() {
        let table = table(10, attacker, .attended)
        #expect(dropped(table.add(10, id: "10", for: attacker)) == -1)
        // An account that does not have more than the new one keeps its sessions.
        let even = SessionTable<Int>(sessionsMax: 4)
        for number in 0..<4 {
            _ = even.add(number, id: "\(number)", for: .user("u\(number)", connection: UInt64(number)), rank: .attended)
        }
        #expect(dropped(even.add(4, id: "4", for: user, rank: .attended)) == -1)
        #expect(dropped(even.add(5, id: "5", for: owner, rank: .attended)) != -1)
    }

    @Test func administratorsSessionsAreNeverEvictedForAClient() {
        let table = table(10, owner, .bare)
        #expect(dropped(table.add(10, id: "10", for: user)) == -1)
    }

    @Test func anAccountsUnattendedSessionsAreEvictedInOrderWhateverTheirConnections() {
        let table = SessionTable<Int>(sessionsMax: 10)
        for number in 0..<10 {
            let requester = Requester.nobody(at: "192.0.2.1:1", connection: UInt64(number + 10))
            _ = table.add(number, id: "\(number)", for: requester, rank: .unattended)
        }
        // The first one was used again since.
        table.change("0", to: .attended)
        table.change("0", to: .unattended)
        #expect(dropped(table.add(10, id: "10", for: neighbour, rank: .unattended)) == 1)
        #expect(table["0"] == 0)
    }

    @Test func anAccountThatIsIdentifiedLaterCountsFromThenOn() {
        let table = table(4, attacker, .attended)
        for number in 0..<2 { table.change("\(number)", to: user) }
        table.remove("3")
        #expect(dropped(table.add(4, id: "4", for: user, rank: .attended)) == .none)
        #expect(dropped(table.add(5, id: "5", for: attacker, rank: .attended)) == 0)
    }

    /// A model that scans all sessions agrees with the tallies; the seed is printed with a failure.
    @Test(arguments: 0..<20 as Range<UInt64>) func talliesCount(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        var model: [UInt64: Int] = [:]
        for _ in 0..<2000 {
            let key = random.next() % 8
            if random.next() % 2 == 0 {
                tally.add(key)
                model[key, default: 0] += 1
            } else if let count = model[key] {
                tally.remove(key)
                model[key] = count == 1 ? nil : count - 1
            }
            #expect(tally.count(of: key) == model[key] ?? 0)
            #expect(tally.largest.map { tally.count(of: $0) } == model.values.max())
        }
    }
}
