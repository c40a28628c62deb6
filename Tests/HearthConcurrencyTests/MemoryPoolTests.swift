import HearthConcurrency
import HearthModel
import HearthTestSupport
import Testing

/// Budgets that share one pool: each has its own part in any case, and all together never exceed the bound.
@Suite("A memory pool")
struct MemoryPoolTests {
    private static let mega = 1 << 20
    private let pool = MemoryPool(bytesMax: 32 << 20)

    private func budget(ownBytes: Int = 4 << 20, shareBytesMax: Int = 56 << 20, smallBytesMax: Int = 0) -> MemoryBudget
    {
        MemoryBudget(
            bytesMax: 64 << 20, shareBytesMax: shareBytesMax, smallBytesMax: smallBytesMax,
            loan: MemoryLoan(pool, ownBytes: ownBytes))
    }

    private func client(_ account: UInt64, _ connection: UInt64) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: false)
    }

    /// Takes as much as possible.
    private func fill(_ budget: MemoryBudget, _ requester: Requester, step: Int = 64 << 10) -> MemoryReservation {
        let made = budget.reservation(for: requester)
        while made.grow(by: step) {}
        return made
    }

    @Test("gives one budget most of the pool while the others are idle")
    func alone() {
        let one = budget()
        let held = (1...100 as ClosedRange<UInt64>).map { fill(one, client(1, $0)) }
        #expect(one.usedBytes > 24 << 20)
        #expect(pool.usedBytes <= 28 << 20)
        _ = held
    }

    @Test(
        "keeps memory for small holders, whatever other budgets hold, in any order",
        arguments: 0..<60 as Range<UInt64>)
    func kept(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let budgets = (0..<10).map { _ in budget() }
        var held: [MemoryReservation] = []
        for _ in 0..<400 {
            let connection = UInt64.random(in: 1...40, using: &random)
            let bytes = Int.random(in: 1...4 << 20, using: &random)
            let one = budgets.randomElement(using: &random)!.reservation(for: client(1, connection))
            if one.grow(by: bytes) { held.append(one) }
            if Int.random(in: 0..<8, using: &random) == 0, !held.isEmpty {
                held.remove(at: Int.random(in: 0..<held.count, using: &random))
            }
            #expect(pool.usedBytes <= 28 << 20, "seed \(seed)")
        }
        for budget in budgets {
            // Forty connections leave at least a fortieth of the budget, which is never smaller than its own part.
            #expect(budget.reservation(for: client(2, 1000)).grow(by: 4 << 10), "seed \(seed)")
        }
        #expect(budgets.reduce(0) { $0 + $1.usedBytes } <= (28 + 40) << 20, "seed \(seed)")
        held = []
        #expect(pool.usedBytes == 0 && budgets.allSatisfy { $0.usedBytes == 0 }, "seed \(seed)")
    }

    @Test("preserves a budget's own part when others have emptied the pool")
    func own() {
        let greedy = (0..<8).map { _ in budget() }
        let held = greedy.map { each in (0..<40 as Range<UInt64>).map { fill(each, client(1, $0)) } }
        let late = budget()
        // A single requester gets the part that a budget of that size gives to one.
        let one = fill(late, client(2, 1))
        #expect(one.bytes > 4 * Self.mega / 4)
        let other = late.reservation(for: client(2, 2))
        #expect(other.grow(by: 64 << 10))
        _ = held
    }

    @Test("keeps memory free in a budget that was filled before others emptied the pool")
    func filledFirst() {
        let first = budget()
        let held = (0..<16 as Range<UInt64>).map { fill(first, client(1, $0)) }
        let others = (0..<8).map { _ in budget() }
        let more = others.map { each in (0..<40 as Range<UInt64>).map { fill(each, client(1, $0)) } }
        #expect(first.reservation(for: client(1, 99)).grow(by: 64 << 10))
        #expect(held.allSatisfy { !$0.grow(by: 64 << 10) })
        _ = more
    }

    @Test("has an eighth for administrators")
    func administrators() {
        let budgets = (0..<8).map { _ in budget() }
        let held = budgets.map { each in (0..<40 as Range<UInt64>).map { fill(each, client(1, $0)) } }
        #expect(pool.usedBytes > 24 << 20 && pool.usedBytes <= 28 << 20)
        let owner = fill(budgets[0], .administrator(connection: 1))
        #expect(owner.bytes >= 4 << 20)
        #expect(pool.usedBytes <= 32 << 20)
        // Administrators are limited to the bound, too.
        #expect(!owner.grow(by: 8 << 20))
        _ = held
    }

    @Test("keeps an account's share proportional when others use up the pool")
    func share() {
        let other = budget()
        let held = (0..<40 as Range<UInt64>).map { fill(other, client(9, $0)) }
        // At most half of the budget.
        let one = budget(shareBytesMax: 28 << 20, smallBytesMax: 16 << 10)
        let first = (0..<100 as Range<UInt64>).map { fill(one, client(1, $0), step: 1 << 10) }
        let ofFirst = first.reduce(0) { $0 + $1.bytes }
        let second = (0..<100 as Range<UInt64>).map { fill(one, client(2, $0), step: 1 << 10) }
        let ofSecond = second.reduce(0) { $0 + $1.bytes }
        #expect(ofSecond > ofFirst / 4, "\(ofFirst) and \(ofSecond)")
        _ = held
    }

    @Test("reports when it is tight, and a budget when it is scarce")
    func scarce() {
        let one = budget()
        let others = (0..<8).map { _ in budget() }
        #expect(!pool.isTight && !one.isScarce)
        let little = one.reservation(for: client(1, 1))
        #expect(little.grow(by: 7 << 19))
        #expect(!one.isScarce)
        let held = others.map { each in (0..<40 as Range<UInt64>).map { fill(each, client(1, $0)) } }
        #expect(pool.isTight && others[0].isScarce && one.isScarce)
        _ = held
    }

    @Test("covers an owner that cannot reject its use, and reports the allowed amount")
    func uncovered() {
        var loan = MemoryLoan(pool, ownBytes: 4 << 20, keptBytes: 0)
        #expect(loan.allowedBytes > 24 << 20)
        let used = 100 << 20
        loan.cover(used, isAdministrator: false)
        #expect(pool.usedBytes <= 28 << 20)
        #expect(loan.allowedBytes < used)
        loan.cover(20 << 20, isAdministrator: false)
        #expect(pool.usedBytes >= 16 << 20)
        let budgets = (0..<8).map { _ in budget() }
        let held = budgets.map { each in (0..<40 as Range<UInt64>).map { fill(each, client(1, $0)) } }
        // The owner should return a part.
        #expect(loan.allowedBytes < 20 << 20 && loan.allowedBytes >= 4 << 20)
        loan.cover(0, isAdministrator: false)
        _ = held
    }

    @Test(
        "stays consistent when threads take and return memory concurrently",
        arguments: 1...4 as ClosedRange<UInt64>)
    func threads(seed: UInt64) {
        let budgets = (0..<4).map { _ in budget(ownBytes: 1 << 20) }
        let pool = pool
        let threads = (0..<4).map { number in
            NamedThread.start("pool-\(number)") {
                var random = SeededGenerator(seed: seed * 100 + UInt64(number))
                var held: [MemoryReservation] = []
                for _ in 0..<2_000 {
                    let requester =
                        Int.random(in: 0..<10, using: &random) == 0
                        ? Requester.administrator(connection: UInt64(number))
                        : Requester(
                            account: 1, connection: UInt64.random(in: 0..<9, using: &random), isAdministrator: false)
                    let one = budgets.randomElement(using: &random)!.reservation(for: requester)
                    if one.grow(by: Int.random(in: 1...2 << 20, using: &random)) { held.append(one) }
                    if held.count > 20 || Bool.random(using: &random), !held.isEmpty {
                        held.remove(at: Int.random(in: 0..<held.count, using: &random))
                    }
                    if pool.usedBytes > pool.bytesMax { Issue.record("\(pool.usedBytes), seed \(seed)") }
                }
            }
        }
        for thread in threads { thread?.join() }
        #expect(pool.usedBytes == 0 && budgets.allSatisfy { $0.usedBytes == 0 }, "seed \(seed)")
    }
}
