import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestDoubles
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

@testable import HearthTreeStorage

/// Writes that take long, while others continuously change the data that they depend on.
@Suite struct ContendedWriteTests {
    private final class Commits: TreeObserver {
        let all = Mutex<[TreeCommit]>([])
        func prepare(_ commit: TreeCommit, after: TreeView) { all.withLock { $0.append(commit) } }
        func publish() {}
        func discard() {}
    }

    /// Reads a location that is written whenever the guard is evaluated beside the writer.
    private final class OvertakenGuard: TreeGuard {
        private let database: TreeDatabase
        private let hastyStepsMax: Int
        private let isAllowed: @Sendable (Int64) -> Bool
        let countBeside = Atomic(0)
        let countHere = Atomic(0)

        init(
            _ database: TreeDatabase, hastyStepsMax: Int, _ isAllowed: @escaping @Sendable (Int64) -> Bool
        ) {
            self.database = database
            self.hastyStepsMax = hastyStepsMax
            self.isAllowed = isAllowed
        }

        func judge(
            _ update: [TreeChange], before: any TreeData, after: any TreeData, now: Int64, stepsMax: Int?
        ) throws(Status) {
            if let stepsMax, stepsMax <= hastyStepsMax { throw .resourceExhausted("That takes long.") }
            let value = try before.value(at: "hot")
            if stepsMax == nil {
                countBeside.add(1, ordering: .relaxed)
                let other = Promise<TreeOutcome>()
                let write = TreeWrite(("hot", Node(.deferred(.increment(1)))))
                database.submit(write, for: .administrator(connection: 7)) { other.give($0) }
                _ = other.wait()
            } else {
                countHere.add(1, ordering: .relaxed)
            }
            guard case .integer(let number)? = value, isAllowed(number) else {
                throw Status(.permissionDenied, "Permission denied")
            }
        }
    }

    private func open(_ options: TreeWriterOptions) throws -> TreeDatabase {
        try TreeDatabase(name: "test", store: MemoryStore(), clock: SystemClock(), options: options)
    }

    private func large(_ count: Int) -> Node {
        Node(children: (0..<count).map { (TreeKey("k\($0)"), Node(.integer(Int64($0)))) })
    }

    private func wide(_ count: Int) -> [TreeChange] {
        (0..<count).map { TreeChange(path: TreePath("wide/k\($0)/v"), node: 1) }
    }

    /// Beside the writer it never ends in time; on the writer's thread no write comes between.
    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [1, 1000])
    func dataOfAGuardMayBeWrittenAllTheTime(nodes: Int) throws {
        var options = TreeWriterOptions()
        options.replacementNodesMin = 100
        let database = try open(options)
        defer { database.close() }
        try database.write(TreeWrite(("hot", 1)))
        let overtaken = OvertakenGuard(database, hastyStepsMax: options.judgeStepsMax) { _ in true }
        var write = TreeWrite(("big", large(nodes)))
        write.guard = overtaken
        #expect(database.begin(write).wait().commit != nil)
        #expect(overtaken.countBeside.load(ordering: .relaxed) == 2)
        #expect(overtaken.countHere.load(ordering: .relaxed) == 1)
        #expect(try database.read { try $0.node(at: "big") } == large(nodes))
        // Each evaluation beside the writer adds one; the last one denies the write.
        try database.write(TreeWrite(("hot", 1), ("big", .empty)))
        let closing = OvertakenGuard(database, hastyStepsMax: options.judgeStepsMax) { $0 < 3 }
        write.guard = closing
        guard case .failed(let status) = database.begin(write).wait() else {
            Issue.record("it was made with rights that had ended")
            return
        }
        #expect(status.code == .permissionDenied)
        #expect(try !database.read { try $0.exists(at: "big") })
    }

    /// A write with so many locations that the writer cannot evaluate its guard fails. No other write fails because of
    /// it.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aWriteThatIsGivenUpFailsAlone() throws {
        var options = TreeWriterOptions()
        options.groupCostMax = 200
        options.judgeAgainStepsMax = options.judgeStepsMax
        let database = try open(options)
        defer { database.close() }
        try database.write(TreeWrite(("hot", 1)))
        // So many writes wait all the time that the guarded write is always among others.
        let crowd = ContinuousWrites(to: database, connections: 100..<200) { connection, _ in
            TreeWrite((TreePath("other/k\(connection)"), 1))
        }
        let overtaken = OvertakenGuard(database, hastyStepsMax: options.judgeStepsMax) { _ in true }
        // It costs more than theirs do; otherwise it would always be the first of a group.
        var write = TreeWrite(("mine", large(60)))
        write.guard = overtaken
        for _ in 0..<5 {
            let outcome = Promise<TreeOutcome>()
            let requester = Requester(account: 1, connection: 1, isAdministrator: false)
            database.submit(write, for: requester) { outcome.give($0) }
            guard case .failed(TreeWriter.tooFast) = outcome.wait() else {
                Issue.record("it can't have been judged")
                break
            }
        }
        #expect(crowd.end() > 100)
        #expect(crowd.failures == 0)
    }

    /// A counter in a large write that other clients increment all the time doesn't prevent the write, and each
    /// increment is counted exactly once.
    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [true, false])
    func aCounterInALargeWriteMayBeWrittenAllTheTime(isWide: Bool) throws {
        var options = TreeWriterOptions.sliced(nodes: 100, records: 20)
        options.groupCostMax = 20
        let database = try open(options)
        defer { database.close() }
        try database.define([TreeIndexDefinition(pattern: [], index: .child("n"))])
        let commits = Commits()
        try database.write(TreeWrite(("count/n", 0), ("ranked", 1), ("ranked/.priority", 0)))
        var model = try database.read { try $0.node(at: .root) }
        database.setObserver(commits)
        for round in 1...3 {
            let increment = Node(.deferred(.increment(1)))
            var changes = isWide ? wide(2_000) : [TreeChange(path: "big", node: large(2_000))]
            changes.append(TreeChange(path: "count/n", node: increment))
            if isWide { changes.append(TreeChange(path: "ranked/.priority", node: increment)) }
            let before = try #require(database.read { try $0.value(at: "count/n")?.number })
            let others = ContinuousWrites(to: database, connections: 2..<3) { _, _ in
                TreeWrite(("count/n", increment))
            }
            let requester = Requester(account: 1, connection: 1, isAdministrator: false)
            let (outcome, beside) = others.count(
                beside: TreeWrite(changes: changes, nowMilliseconds: testNow), of: requester)
            #expect(outcome.commit != nil)
            #expect(beside > 20)
            let count = others.end()
            #expect(others.failures == 0)
            #expect(try database.read { try $0.value(at: "count/n")?.number } == before + Double(count) + 1)
            if isWide { #expect(try database.read { try $0.priority(at: "ranked") } == .integer(Int64(round))) }
        }
        for commit in commits.all.withLock({ $0 }) { model = model.applying(commit.changes) }
        #expect(try database.read { try $0.node(at: .root) } == model)
        database.finishSettling()
        #expect(try database.read { try TreeIntegrityCheck.run($0, max: 9) } == [])
    }
}
