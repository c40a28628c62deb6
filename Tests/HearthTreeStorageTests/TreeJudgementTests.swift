import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthTestDoubles
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

@testable import HearthTreeStorage

/// Guards that take long are evaluated beside the writer.
@Suite struct TreeJudgementTests {
    private let options: TreeWriterOptions
    private let store = FaultyStore()
    private let database: TreeDatabase

    init() throws {
        var options = TreeWriterOptions()
        options.replacementNodesMin = 100
        self.options = options
        database = try TreeDatabase(name: "test", store: store, clock: SystemClock(), options: options)
    }

    /// Decides by `isAllowed`, and takes more steps than the writer allows.
    private final class SlowGuard: TreeGuard {
        typealias Body = @Sendable (_ before: any TreeData, _ after: any TreeData, _ count: Int) throws -> Bool
        private let isAllowed: Body
        let count = Atomic(0)
        let countHere = Atomic(0)
        private let rules = Mutex<Rules>(Rules())

        final class Rules: Sendable {}

        init(_ isAllowed: @escaping Body) { self.isAllowed = isAllowed }

        var basis: (any AnyObject & Sendable)? { rules.withLock { $0 } }
        func changeRules() { rules.withLock { $0 = Rules() } }

        func judge(
            _ update: [TreeChange], before: any TreeData, after: any TreeData, now: Int64, stepsMax: Int?
        ) throws(Status) {
            if stepsMax != nil {
                countHere.add(1, ordering: .relaxed)
                throw .resourceExhausted("That takes long.")
            }
            let number = count.add(1, ordering: .relaxed).newValue
            let isAllowed = Result { try self.isAllowed(before, after, number) }
            guard case .success(true) = isAllowed else { throw Status(.permissionDenied, "Permission denied") }
        }
    }

    private func large(_ count: Int, _ value: Int64 = 0) -> Node {
        Node(children: (0..<count).map { (TreeKey("k\($0)"), Node(.integer(value + Int64($0)))) })
    }

    private func outcome(_ path: TreePath, _ node: Node, _ treeGuard: SlowGuard) -> TreeOutcome {
        var write = TreeWrite((path, node))
        write.guard = treeGuard
        return database.begin(write).wait()
    }

    private func isDenied(_ outcome: TreeOutcome) -> Bool {
        if case .failed(let status) = outcome { status.code == .permissionDenied } else { false }
    }

    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [1, 1000])
    func othersWriteWhileAGuardIsEvaluated(nodes: Int) throws {
        let database = database
        let slow = SlowGuard { before, after, _ in
            // The evaluation doesn't end before another write is made.
            let other = Promise<TreeOutcome>()
            database.submit(TreeWrite(("small", 1)), for: .administrator(connection: 7)) { other.give($0) }
            guard other.wait().commit != nil else { return false }
            return try after.exists(at: "big") && !before.exists(at: "big")
        }
        #expect(outcome("big", large(nodes), slow).commit != nil)
        #expect(slow.count.load(ordering: .relaxed) == 1)
        // A large write isn't even tried on the writer's thread.
        #expect(slow.countHere.load(ordering: .relaxed) == (nodes > 100 ? 0 : 1))
        #expect(options.counters.judgements.load(ordering: .relaxed) == 1)
        #expect(try database.read { try $0.node(at: "big") } == large(nodes))
    }

    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [1, 1000])
    func aGuardIsEvaluatedAgainWhenItsDataChanged(nodes: Int) throws {
        let database = database
        try database.write(TreeWrite(("open", true)))
        let slow = SlowGuard { before, _, number in
            let isOpen = try before.value(at: "open") == .bool(true)
            if number == 1 { try database.write(TreeWrite(("open", false))) }
            return isOpen
        }
        #expect(isDenied(outcome("big", large(nodes), slow)))
        #expect(slow.count.load(ordering: .relaxed) == 2)
        #expect(try !database.read { try $0.exists(at: "big") })
    }

    @Test(.timeLimit(.minutes(Patience.minutes)))
    func aGuardIsNotEvaluatedAgainWhenItsReadsAreTheSame() throws {
        let database = database
        try database.write(TreeWrite(("users", tree("{\"a\":{\"name\":1},\"b\":2}"))))
        let slow = SlowGuard { before, _, _ in
            // Writes at, above and below the location that the guard reads do not change the result of its reads.
            let isThere = try before.exists(at: "users") && before.hasChildren(at: "users/a")
            let isTwo = try before.value(at: "users/b") == .integer(2) && before.value(at: "users/c") == nil
            try database.write(TreeWrite(("users/a/name", 7)))
            try database.write(TreeWrite(("users", tree("{\"a\":{\"other\":1},\"b\":2}"))))
            return isThere && isTwo
        }
        #expect(outcome("big", large(1000), slow).commit != nil)
        #expect(slow.count.load(ordering: .relaxed) == 1)
    }

    @Test(.timeLimit(.minutes(Patience.minutes)))
    func changedRulesAreEvaluatedAgain() throws {
        let slow = Mutex<SlowGuard?>(nil)
        let treeGuard = SlowGuard { _, _, number in
            if number == 1 { slow.withLock { $0 }?.changeRules() }
            return number == 1
        }
        slow.withLock { $0 = treeGuard }
        #expect(isDenied(outcome("big", 1, treeGuard)))
        #expect(treeGuard.count.load(ordering: .relaxed) == 2)
    }

    /// The data that it reads changes every time: it ends, and blocks no other write.
    @Test(.timeLimit(.minutes(Patience.minutes)))
    func aWriteIsGivenUpInTheEnd() throws {
        let database = database
        let slow = SlowGuard { before, _, number in
            _ = try before.value(at: "counter")
            try database.write(TreeWrite(("counter", Node(.integer(Int64(number))))))
            return true
        }
        guard case .failed(let status) = outcome("big", 1, slow) else {
            Issue.record("it can't have been judged")
            return
        }
        #expect(status.code == .unavailable)
        #expect(slow.count.load(ordering: .relaxed) == Limits.treeAttemptsMax)
    }

    /// Increments are computed on the version on which the guard is evaluated.
    @Test(.timeLimit(.minutes(Patience.minutes)))
    func aGuardSeesTheIncrementThatIsMade() throws {
        let database = database
        try database.write(TreeWrite(("n", 1)))
        let slow = SlowGuard { _, after, number in
            let value = try after.value(at: "n")
            if number == 1 { try database.write(TreeWrite(("n", 10))) }
            return value == .integer(number == 1 ? 2 : 11)
        }
        #expect(outcome("n", Node(.deferred(.increment(1))), slow).commit != nil)
        #expect(try database.read { try $0.value(at: "n") } == .integer(11))
    }

    @Test(.timeLimit(.minutes(Patience.minutes)))
    func aFailedGroupDoesNotPreventTheWrite() throws {
        try database.write(TreeWrite(("a", 1)))
        let failing = database
        store.refuse(transactions: 1)
        #expect(throws: Status.self) { try failing.write(TreeWrite(("a", 2))) }
        let slow = SlowGuard { before, _, _ in try before.value(at: "a") == .integer(1) }
        #expect(outcome("big", large(1000), slow).commit != nil)
        #expect(slow.count.load(ordering: .relaxed) == 1)
    }

    @Test func readsAboveTheLimitCountAsTheWholeTree() throws {
        try database.write(TreeWrite(("a", large(1000)), ("b", 1)))
        let reads = TreeReads(countMax: 100)
        let view = try database.view()
        defer { view.close() }
        let observed = ObservedTree(view: view, reads: reads)
        for number in 0..<1000 { _ = try observed.value(at: TreePath("a/k\(number)")) }
        _ = try observed.value(at: "b")
        #expect(reads.count <= 100)
        #expect(try !reads.areSame(in: view, changedAt: ["a/other"]))
        #expect(try reads.areSame(in: view, changedAt: ["b", "c", "b/d"]))
        #expect(try !reads.areSame(in: view, changedAt: [.root]))
    }
}
