import Synchronization
import HearthTestSupport
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

    /// The owner sleeps until a put asks for a wake: a wake that is missing would leave jobs, and the owner would not end.
    @Test(.timeLimit(.minutes(Patience.minutes))) func losesNoWakeAndNoJobBetweenThreads() throws {
        let (threads, jobs) = (4, 2_000)
        let owner = Owner(threads: threads)
        let puts = (0..<threads).compactMap { thread in
            NamedThread.start("put") { for number in 0..<jobs { owner.put(thread, number) } }
        }
        try #require(puts.count == threads)
        while owner.count < threads * jobs { owner.work() }
        for thread in puts { thread.join() }
        #expect(owner.numbers == Array(repeating: Array(0..<jobs), count: threads))
    }

    /// The owner's thread is the test's. `@unchecked Sendable`: only jobs, which it runs, touch `numbers`; the monitor guards
    /// `isWoken`.
    private final class Owner: @unchecked Sendable {
        private let mailbox = Mailbox()
        private let monitor = Monitor()
        private var isWoken = false
        private(set) var numbers: [[Int]]

        init(threads: Int) { numbers = Array(repeating: [], count: threads) }

        var count: Int { numbers.reduce(0) { $0 + $1.count } }

        func put(_ thread: Int, _ number: Int) {
            guard mailbox.put({ [self] in numbers[thread].append(number) }) == .wantsWake else { return }
            monitor.withLock {
                isWoken = true
                monitor.signal()
            }
        }

        func work() {
            monitor.withLock {
                while !isWoken { monitor.wait() }
                isWoken = false
            }
            for job in mailbox.takeAll() { job() }
        }
    }

    /// The macro cannot take what is not copyable.
    private func expect(_ mailbox: borrowing Mailbox, isEmpty expected: Bool) {
        let isEmpty = mailbox.isEmpty
        #expect(isEmpty == expected)
    }
}
