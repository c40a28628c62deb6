import HearthConcurrency
import HearthModel
import Testing

@Suite("A memory budget")
struct MemoryBudgetTests {
    private let budget = MemoryBudget(bytesMax: 100, shareBytesMax: 40)
    private let first = Requester(account: 1, connection: 1, isAdministrator: false)
    private let second = Requester(account: 2, connection: 2, isAdministrator: false)

    @Test("refuses an account more than its share, over all its reservations")
    func share() {
        let one = budget.reservation(for: first)
        let other = budget.reservation(for: first)
        #expect(one.grow(by: 30))
        #expect(!other.grow(by: 11))
        #expect(other.grow(by: 10))
        #expect(budget.reservation(for: second).grow(by: 40))
        #expect(budget.usedBytes == 40)
    }

    @Test("lets administrators have what is left, and no more")
    func administrators() {
        let owner = budget.reservation(for: .administrator(connection: 9))
        #expect(owner.grow(by: 90))
        #expect(!owner.grow(by: 11))
        #expect(!budget.reservation(for: second).grow(by: 11))
    }

    @Test("gets back what a freed reservation held")
    func freed() {
        var one: MemoryReservation? = budget.reservation(for: first)
        #expect(one?.resize(to: 40) == true)
        #expect(one?.resize(to: 10) == true)
        #expect(budget.usedBytes == 10)
        one = nil
        #expect(budget.usedBytes == 0)
    }
}
