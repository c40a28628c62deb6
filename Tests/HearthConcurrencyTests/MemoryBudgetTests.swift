import HearthConcurrency
import HearthModel
import Testing

@Suite("A memory budget")
struct MemoryBudgetTests {
    private let budget = MemoryBudget(bytesMax: 1000, shareBytesMax: 40)
    private let first = Requester(account: 1, connection: 1, isAdministrator: false)
    private let second = Requester(account: 2, connection: 2, isAdministrator: false)

    @Test("limits an account to its share, over all its reservations")
    func share() {
        let one = budget.reservation(for: first)
        let other = budget.reservation(for: first)
        #expect(one.grow(by: 30))
        #expect(!other.grow(by: 11))
        #expect(other.grow(by: 10))
        let another = budget.reservation(for: second)
        #expect(another.grow(by: 30))
        #expect(budget.usedBytes == 70)
    }

    @Test("lets administrators use the rest, and no more")
    func administrators() {
        let owner = budget.reservation(for: .administrator(connection: 9))
        #expect(owner.grow(by: 990))
        #expect(!owner.grow(by: 11))
        #expect(!budget.reservation(for: second).grow(by: 11))
    }

    @Test("regains the bytes of a freed reservation")
    func freed() {
        var one: MemoryReservation? = budget.reservation(for: first)
        #expect(one?.resize(to: 40) == true)
        #expect(one?.resize(to: 10) == true)
        #expect(budget.usedBytes == 10)
        one = nil
        #expect(budget.usedBytes == 0)
    }

    @Test("keeps memory free for small holders, however many hold as much as they can")
    func free() {
        for connections in [1, 10, 100, 1000] {
            let budget = MemoryBudget(bytesMax: 1 << 20, shareBytesMax: 1 << 20)
            var greedy: [MemoryReservation] = []
            for number in 0..<connections {
                let one = budget.reservation(
                    for: Requester(account: 1, connection: UInt64(number), isAdministrator: false))
                while one.grow(by: 256) {}
                greedy.append(one)
            }
            #expect(budget.usedBytes <= (1 << 20) - (1 << 20) / (connections + 1) / 2, "\(connections) connections")
            let other = budget.reservation(for: Requester(account: 1, connection: 5000, isAdministrator: false))
            #expect(other.grow(by: (1 << 20) / (connections + 1) / (connections + 1) / 4), "\(connections) connections")
            // Large holders get no more.
            #expect(greedy.allSatisfy { !$0.grow(by: 256) })
        }
    }

    @Test("lets a connection hold a little when its account has used its share")
    func small() {
        let budget = MemoryBudget(bytesMax: 2000, shareBytesMax: 400, smallBytesMax: 50)
        let first = budget.reservation(for: Requester(account: 1, connection: 1, isAdministrator: false))
        #expect(first.grow(by: 400))
        let second = budget.reservation(for: Requester(account: 1, connection: 2, isAdministrator: false))
        #expect(second.grow(by: 50))
        #expect(!second.grow(by: 1))
    }
}
