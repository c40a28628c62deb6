import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthConcurrency

@Suite("Groups of workers")
struct WorkerGroupTests {
    /// The names of a test's jobs, in the order in which they ran.
    private final class Record: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: String) { lines.withLock { $0.append(line) } }
        var all: [String] { lines.withLock { $0 } }
    }

    private func client(_ connection: UInt64, account: UInt64 = 1) -> Requester {
        Requester(account: account, connection: connection, isAdministrator: false)
    }

    /// A group of one thread, which is busy until the gate opens.
    private func busyGroup(jobsMax: Int = 1000) -> (group: WorkerGroup, gate: Latch) {
        let group = WorkerGroup(name: "test", threadsMax: 1, jobsMax: jobsMax)
        let gate = Latch()
        let begun = Latch()
        group.run(for: .server, refused: { _ in }) {
            begun.open()
            gate.wait()
        }
        begun.wait()
        return (group, gate)
    }

    private func finish(_ group: WorkerGroup) {
        let last = Latch()
        group.run(for: client(999_999, account: 999_999), cost: 1 << 40, refused: { _ in last.open() }) { last.open() }
        last.wait()
    }

    @Test("serve connections round-robin, however many jobs one of them has queued")
    func roundRobin() {
        let (group, gate) = busyGroup()
        let record = Record()
        for _ in 0..<250 { group.run(for: client(1), refused: { _ in }) { record.add("many") } }
        group.run(for: client(2), refused: { _ in }) { record.add("one") }
        group.run(for: client(3, account: 2), refused: { _ in }) { record.add("another") }
        gate.open()
        finishAll(group, record, count: 252)
        let positions = record.all.enumerated().filter { $0.element != "many" }.map(\.offset)
        #expect(positions.count == 2)
        #expect(positions.allSatisfy { $0 < 5 })
        group.stop()
    }

    private func finishAll(_ group: WorkerGroup, _ record: Record, count: Int) {
        while record.all.count < count { finish(group) }
    }

    @Test(
        "begin as many jobs at a time as there may be threads, also when one thread was idle",
        .timeLimit(.minutes(Patience.minutes)))
    func startsThreads() {
        for _ in 0..<200 {
            let group = WorkerGroup(name: "test", threadsMax: 2)
            finish(group)
            // The first ends only after the second has begun.
            let (second, done) = (Latch(), Latch())
            group.run(for: client(1), refused: { _ in }) {
                second.wait()
                done.open()
            }
            group.run(for: client(2), refused: { _ in }) { second.open() }
            done.wait()
            group.stop()
        }
    }

    @Test("reject, when too many jobs wait, those of the connection that has most")
    func full() {
        let (group, gate) = busyGroup(jobsMax: 10)
        let record = Record()
        for number in 0..<10 {
            group.run(for: client(1), refused: { record.add("refused \(number) \($0.code)") }) {}
        }
        for connection in 2..<6 {
            group.run(for: client(UInt64(connection)), refused: { _ in record.add("wrong") }) { record.add("run") }
        }
        group.run(for: .administrator(connection: 9), refused: { _ in record.add("wrong") }) { record.add("run") }
        #expect(record.all == (5...9).reversed().map { "refused \($0) resourceExhausted" })
        #expect(group.statistics.refused == 5)
        gate.open()
        // `finish` is one more, for which another of the first connection's may be rejected.
        while record.all.filter({ $0 == "run" }).count < 5 { finish(group) }
        #expect(!record.all.contains("wrong"))
        group.stop()
    }

    @Test("do not begin cancelled jobs")
    func cancelled() {
        let (group, gate) = busyGroup()
        let record = Record()
        let cancellation = Cancellation()
        group.run(for: client(1), cancellation: cancellation, refused: { record.add("\($0.code)") }) {
            record.add("run")
        }
        cancellation.cancel()
        gate.open()
        while record.all.isEmpty { finish(group) }
        #expect(record.all == ["cancelled"])
        group.stop()
    }

    @Test("reject waiting jobs when they stop, and later ones")
    func stopped() {
        let (group, gate) = busyGroup()
        let record = Record()
        group.run(for: client(1), refused: { record.add("\($0.code)") }) { record.add("run") }
        let stopping = Latch()
        let thread = NamedThread.start("stopper") {
            group.stop()
            stopping.open()
        }
        while record.all.isEmpty {}
        gate.open()
        stopping.wait()
        thread?.join()
        group.run(for: client(1), refused: { record.add("\($0.code)") }) { record.add("run") }
        #expect(record.all == ["unavailable", "unavailable"])
    }

    // MARK: Giving way

    @Test("let jobs continue that have begun later, and continue themselves", .timeLimit(.minutes(Patience.minutes)))
    func givesWay() {
        let group = WorkerGroup(name: "test", threadsMax: 1, sliceNanoseconds: 0)
        let record = Record()
        let (begun, queued, end) = (Latch(), Latch(), Latch())
        group.runInSlices(for: client(1), refused: { _ in }) { slice in
            begun.open()
            queued.wait()
            // It cannot end before the others have run.
            while record.all.count < 3 { slice.giveWay() }
            record.add("long")
            end.open()
        }
        begun.wait()
        for connection in 2..<5 {
            group.run(for: client(UInt64(connection)), refused: { _ in }) { record.add("short") }
        }
        queued.open()
        end.wait()
        #expect(record.all == ["short", "short", "short", "long"])
        group.stop()
    }

    @Test(
        "run a limited number of jobs at the same time, and each to its end, however many give way",
        .timeLimit(.minutes(Patience.minutes)))
    func activeMax() {
        let group = WorkerGroup(name: "test", threadsMax: 2, parkedMax: 5, sliceNanoseconds: 0)
        let running = Mutex((now: 0, most: 0, done: 0))
        @Sendable func change(_ by: Int) {
            running.withLock { running in
                running.now += by
                running.most = max(running.most, running.now)
            }
        }
        let count = 40
        for number in 0..<count {
            group.runInSlices(for: client(UInt64(number % 7)), refused: { _ in }) { slice in
                change(1)
                for _ in 0..<20 {
                    change(-1)
                    slice.giveWay()
                    change(1)
                }
                change(-1)
                running.withLock { $0.done += 1 }
            }
        }
        while running.withLock({ $0.done }) < count { finish(group) }
        #expect(running.withLock { $0.most } <= 2)
        group.stop()
        #expect(group.statistics.running == 0)
    }

    @Test("finish jobs that have given way when they stop", .timeLimit(.minutes(Patience.minutes)))
    func stoppedWhileParked() {
        let group = WorkerGroup(name: "test", threadsMax: 1, sliceNanoseconds: 0)
        let (first, second) = (Latch(), Latch())
        let record = Record()
        group.runInSlices(for: client(1), refused: { _ in record.add("refused") }) { slice in
            first.open()
            while group.statistics.waiting == 0 {}
            slice.giveWay()
            record.add("first")
        }
        first.wait()
        group.run(for: client(2), refused: { _ in record.add("refused") }) {
            second.open()
            while group.isStopped == false {}
            record.add("second")
        }
        second.wait()
        group.stop()
        #expect(record.all.sorted() == ["first", "second"])
    }

    @Test("do not reject a job that has begun", .timeLimit(.minutes(Patience.minutes)))
    func parkedIsNotRefused() {
        let group = WorkerGroup(name: "test", threadsMax: 1, jobsMax: 3, sliceNanoseconds: 0)
        let (begun, queued, gate) = (Latch(), Latch(), Latch())
        let record = Record()
        group.runInSlices(for: client(1), refused: { _ in record.add("wrong") }) { slice in
            begun.open()
            queued.wait()
            slice.giveWay()
            record.add("long")
        }
        begun.wait()
        group.run(for: client(2), refused: { _ in record.add("wrong") }) { gate.wait() }
        queued.open()
        while group.statistics.waiting > 0 {}
        // The first one has given way to this one. Now its account has the most.
        for _ in 0..<20 { group.run(for: client(1), refused: { _ in record.add("refused") }) { record.add("run") } }
        gate.open()
        while record.all.count < 21 { finish(group) }
        #expect(record.all.filter { $0 == "long" }.count == 1)
        #expect(!record.all.contains("wrong"))
        #expect(record.all.filter { $0 == "refused" }.count >= 16)
        group.stop()
    }

    @Test("count waiting jobs and their waiting time")
    func figures() {
        let (group, gate) = busyGroup()
        for _ in 0..<7 { group.run(for: client(1), refused: { _ in }) {} }
        #expect(group.statistics.waiting == 7)
        #expect(group.statistics.running == 1)
        gate.open()
        while group.statistics.waiting > 0 || group.statistics.running > 0 { finish(group) }
        #expect(group.statistics.waits.reduce(0, +) >= 8)
        group.stop()
    }
}
