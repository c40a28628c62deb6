import Synchronization
import Testing

@testable import HearthConcurrency

@Suite("Jobs from other threads")
struct MailboxTests {
    @Test func asksForOneWakeUntilAllIsTaken() {
        let mailbox = Mailbox()
        let order = Mutex<[Int]>([])
        for _ in 0..<2 {
            expect(mailbox, isEmpty: true)
            let deliveries = [1, 2].map { number in mailbox.put { order.withLock { $0.append(number) } } }
            #expect(deliveries == [.wantsWake, .queued])
            expect(mailbox, isEmpty: false)
            for job in mailbox.takeAll() { job() }
        }
        #expect(order.withLock { $0 } == [1, 2, 1, 2])
    }

    @Test func takesNothingAfterItsEnd() {
        let mailbox = Mailbox()
        _ = mailbox.put {}
        let left = mailbox.close()
        #expect(left.count == 1)
        let delivery = mailbox.put {}
        #expect(delivery == .closed)
        expect(mailbox, isEmpty: true)
    }

    /// The macro cannot take what is not copyable.
    private func expect(_ mailbox: borrowing Mailbox, isEmpty expected: Bool) {
        let isEmpty = mailbox.isEmpty
        #expect(isEmpty == expected)
    }
}
