@testable import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestDoubles
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

@testable import HearthTreeStorage

@Suite struct TreeWriterTests {
    let store = FaultyStore()
    let database: TreeDatabase

    init() throws {
        var options = TreeWriterOptions()
        // However long it takes on a busy machine.
        options.groupMilliseconds = 600_000
        database = try TreeDatabase(name: "test", store: store, clock: SystemClock(), options: options)
    }

    private func root() throws -> Node { try database.read { try $0.node(at: .root) } }

    /// Runs writes that share a group.
    private func group(_ writes: [TreeWrite]) -> [TreeOutcome] {
        store.hold()
        // The first is taken alone and waits at the gate; the others collect behind it.
        let first = database.begin(TreeWrite(changes: [], nowMilliseconds: testNow))
        store.waitForWriter()
        let rest = writes.map { database.begin($0) }
        store.release()
        _ = first.wait()
        return rest.map { $0.wait() }
    }

    // MARK: Conditions and guards

    private struct Judge: TreeGuard {
        var isAllowed = true
        var seen: @Sendable ([TreeChange], any TreeData, any TreeData) -> Void = { _, _, _ in }

        func judge(
            _ update: [TreeChange], before: any TreeData, after: any TreeData, now: Int64, stepsMax: Int?
        ) throws(Status) {
            seen(update, before, after)
            if !isAllowed { throw Status(.permissionDenied, "Permission denied") }
        }
    }

    private func conditional(_ hash: String, reveals: Bool, isAllowed: Bool) -> TreeOutcome {
        var write = TreeWrite(("a", 2))
        write.condition = TreeWrite.Condition(path: "a", hash: hash, reveals: reveals)
        write.guard = Judge(isAllowed: isAllowed)
        return database.begin(write).wait()
    }

    @Test func aConditionComparesTheHashOfThePresentValue() throws {
        #expect(conditional("", reveals: true, isAllowed: true).commit != nil)
        guard case .stale = conditional("", reveals: true, isAllowed: true) else {
            Issue.record("a written location is not empty")
            return
        }
        #expect(conditional(Node(.integer(2)).hash, reveals: false, isAllowed: true).commit?.isNoChange == true)
    }

    @Test func aConditionRevealsNothingWhenTheGuardDenies() throws {
        guard case .failed(let status) = conditional("x", reveals: false, isAllowed: false) else {
            Issue.record("the guard comes first")
            return
        }
        #expect(status.code == .permissionDenied)
        guard case .stale = conditional("x", reveals: true, isAllowed: false) else {
            Issue.record("the condition comes first")
            return
        }
        guard case .failed = conditional("", reveals: true, isAllowed: false) else {
            Issue.record("the guard is evaluated as well")
            return
        }
        #expect(try root() == .empty)
    }

    @Test func aGuardSeesTheWholeWriteAndBothStates() throws {
        try database.write(TreeWrite(("n", 1)))
        let seen = Mutex<[Node]>([])
        var write = TreeWrite(("n", Node(.deferred(.increment(2)))), ("t", Node(.deferred(.timestamp))))
        write.guard = Judge { update, before, after in
            let nodes = (try? [before.node(at: .root), after.node(at: .root)]) ?? []
            seen.withLock { $0 = nodes + update.map(\.node) }
        }
        try database.write(write)
        let after = tree("{\"n\":3,\"t\":\(testNow)}")
        #expect(seen.withLock { $0 } == [tree("{\"n\":1}"), after, 3, Node(.integer(testNow))])
        #expect(try root() == after)
    }

    @Test func aFailedWriteLeavesNothingBehind() throws {
        try database.write(TreeWrite(("a", tree("{\"b\":1,\".priority\":5}"))))
        let before = try contents(store)
        var write = TreeWrite(("a/b", .empty), ("c", 1), ("d/.priority", 1))
        write.guard = Judge(isAllowed: false)
        write.journal = [JournalChange(session: "s", entry: "", record: [1])]
        let outcomes = group([write, TreeWrite(("x", 1)), write])
        #expect(outcomes.map { $0.commit == nil } == [true, false, true])
        try database.write(TreeWrite(("x", .empty)))
        #expect(try contents(store) == before)
        #expect(try database.read { try $0.journal().isEmpty })
    }

    // MARK: Order

    private final class Recorder: TreeObserver {
        let events = Mutex<[String]>([])
        func note(_ event: String) { events.withLock { $0.append(event) } }

        func prepare(_ commit: TreeCommit, after: TreeView) {
            do throws(Status) {
                let node = try after.node(at: .root)
                note("\(node.children.map(\.key.string).joined()) \(after.version == commit.version)")
            } catch {
                note("unreadable")
            }
        }

        func publish() { note("publish") }
        func discard() { note("discard") }
    }

    @Test func observersSeeEachCommitAndCompletionsComeLast() throws {
        let recorder = Recorder()
        database.setObserver(recorder)
        store.hold()
        let first = database.begin(TreeWrite(("a", 1)))
        store.waitForWriter()
        let done = Promise<Bool>()
        for name in ["b", "c", "d"] {
            var write = TreeWrite((TreePath(name), 1))
            if name == "c" { write.guard = Judge(isAllowed: false) }
            database.submit(write) { outcome in
                recorder.note("\(name) \(outcome.commit != nil)")
                if name == "d" { done.give(true) }
            }
        }
        database.perform { view in recorder.note("perform \((try? view.children(of: .root, limit: 9).count) ?? -1)") }
        store.release()
        _ = first.wait()
        _ = done.wait()
        try database.write(TreeWrite(("e", 1)))
        #expect(
            recorder.events.withLock { $0 } == [
                "a true", "publish", "ab true", "abd true", "publish", "b true", "c false", "d true", "perform 3",
                "abde true", "publish",
            ])
    }

    @Test func eachWriteBuildsOnThoseBeforeIt() throws {
        let add = TreeWrite(("n", Node(.deferred(.increment(1)))))
        let outcomes = group(Array(repeating: add, count: 100))
        #expect(outcomes.map { $0.commit?.changes[0].node } == (1...100).map { Node(.integer($0)) })
        let versions = outcomes.compactMap { $0.commit?.version }
        #expect(versions == Array(Set(versions)).sorted())
        #expect(database.statistics.commits == 101)
        #expect(database.statistics.groups == 2)
        #expect(database.statistics.queuedWrites == 0)
    }

    @Test func jobsBetweenWritesDoNotSplitTheirGroup() throws {
        store.hold()
        let first = database.begin(TreeWrite(("a", 1)))
        store.waitForWriter()
        let order = Mutex<[Int]>([])
        var writes: [Promise<TreeOutcome>] = []
        for number in 0..<20 {
            writes.append(database.begin(TreeWrite((TreePath("k\(number)"), 1))))
            database.perform { view in
                let count = (try? view.children(of: .root, limit: 99).count) ?? -1
                order.withLock { $0 += [number, count] }
            }
        }
        store.release()
        _ = first.wait()
        for write in writes { #expect(write.wait().commit != nil) }
        try database.write(TreeWrite(("z", 1)))
        #expect(order.withLock { $0 } == (0..<20).flatMap { [$0, 21] })
        #expect(database.statistics.groups == 3)
    }

    @Test func versionsIncreaseWhateverTheClockDoes() throws {
        let clock = StoppedClock()
        let store = try LastingStore(.memory)
        var last: Int64 = 0
        for time in [5_000_000, 5_000_000, 1_000_000, 9_000_000] as [Int64] {
            clock.set(microseconds: time)
            let database = try TreeDatabase(name: "test", store: store, clock: clock)
            for _ in 0..<2 {
                let version = try database.write(TreeWrite(("a", 1))).version
                #expect(version > last && version >= time)
                last = version
            }
            #expect(try database.read(\.version) == last)
            database.close()
        }
    }

    @Test func unreadableDataReportsTheReason() throws {
        try database.write(TreeWrite(("a", 1)))
        store.setUnreadable(true)
        let seen = Promise<[Status.Code]>()
        database.perform { view in
            var codes: [Status.Code] = []
            func check(_ body: () throws(Status) -> Void) {
                do throws(Status) { try body() } catch { codes.append(error.code) }
            }
            check { () throws(Status) in _ = try view.node(at: .root) }
            check { () throws(Status) in _ = try view.value(at: "a") }
            check { () throws(Status) in _ = try view.exists(at: "a") }
            seen.give(codes)
        }
        #expect(seen.wait() == Array(repeating: .resourceExhausted, count: 3))
    }

    // MARK: Ends

    @Test func writesBeforeTheEndAreMadeAndLaterOnesFail() throws {
        store.hold()
        let promises = (0..<10).map { database.begin(TreeWrite((TreePath("k\($0)"), 1))) }
        store.release()
        database.close()
        #expect(promises.allSatisfy { $0.wait().commit != nil })
        guard case .failed(let status) = database.begin(TreeWrite(("a", 1))).wait() else {
            Issue.record("a closed database takes nothing")
            return
        }
        #expect(status.code == .unavailable)
        #expect(!database.perform { _ in })
    }

    @Test func aReleasedDatabaseAnswersAll() throws {
        let store = FaultyStore()
        store.hold()
        var database: TreeDatabase? = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        let promises = (0..<10).compactMap { database?.begin(TreeWrite((TreePath("k\($0)"), 1))) }
        store.release()
        database = nil
        #expect(promises.map { $0.wait().commit != nil } == Array(repeating: true, count: 10))
    }

    // MARK: Limits

    @Test func tooManyWritesAreRefusedAtOnce() throws {
        store.hold()
        let last = Promise<TreeOutcome>()
        for number in 1...Limits.treeWriteQueueMax {
            database.submit(TreeWrite(("a", 1))) { if number == Limits.treeWriteQueueMax { last.give($0) } }
        }
        guard case .failed(let status) = database.begin(TreeWrite(("a", 1))).wait() else {
            Issue.record("the queue is full")
            return
        }
        #expect(status.code == .resourceExhausted)
        store.release()
        #expect(last.wait().commit != nil)
        #expect(try database.write(TreeWrite(("a", 2))).isNoChange == false)
    }

    private func refusal(_ write: TreeWrite) -> Status? {
        if case .failed(let status) = database.begin(write).wait() { status } else { nil }
    }

    @Test func invalidDataIsRejected() throws {
        let deepest = TreePath(keys: Array(repeating: "k", count: Limits.treeDepthMax))
        let bad: [TreeWrite] = [
            TreeWrite((TreePath(keys: ["a.b"]), 1)), TreeWrite((TreePath(keys: [""]), 1)),
            TreeWrite((TreePath(keys: ["a\u{1}"]), 1)),
            TreeWrite((TreePath(keys: [TreeKey(String(repeating: "k", count: 769))]), 1)),
            TreeWrite((deepest.child("k"), 1)), TreeWrite((deepest, tree("{\"k\":1}"))),
            TreeWrite(("a", Node(children: [(TreeKey("a$"), Node(.integer(1)))]))),
            TreeWrite(("a", Node(.integer(1), priority: true))),
            TreeWrite(("a/.priority", true)), TreeWrite(("a/.priority", tree("{\"k\":1}"))),
            TreeWrite(("a", Node(.string(String(repeating: "x", count: Limits.treeStringSizeBytesMax + 1))))),
            TreeWrite(
                changes: [], nowMilliseconds: 0,
                journal: [
                    JournalChange(
                        session: "s", entry: "",
                        record: Array(repeating: 0, count: Limits.treeJournalRecordSizeBytesMax + 1))
                ]),
        ]
        for (number, write) in bad.enumerated() {
            #expect(refusal(write)?.code == .invalidArgument, "write \(number)")
        }
        #expect(try contents(store).isEmpty)
        #expect(refusal(TreeWrite((deepest, 1))) == nil)
        #expect(
            refusal(TreeWrite(("s", Node(.string(String(repeating: "x", count: Limits.treeStringSizeBytesMax))))))
                == nil)
    }

    @Test func readsAreBounded() throws {
        let node = Node(children: (0..<100).map { (TreeKey($0), Node(.string("0123456789"))) })
        try database.write(TreeWrite(("a", node), ("b", Node(.string(String(repeating: "x", count: 5000))))))
        try database.read { view in
            for (path, size) in [("a", 100 * (7 + 11 + 32)), ("b", 5 + 5000 + 32)] as [(TreePath, Int)] {
                var assembler = NodeAssembler()
                var walk = try SubtreeWalk(PathCode.location(path), in: view.snapshot, sizeBytesMax: size)
                try walk.run(&assembler)
                #expect(assembler.result == (try view.node(at: path)))
                #expect(walk.sizeBytes <= size && walk.sizeBytes > size - 200)
                let bound = walk.sizeBytes - 1
                #expect(throws: Status.self) {
                    var walk = try SubtreeWalk(PathCode.location(path), in: view.snapshot, sizeBytesMax: bound)
                    var assembler = NodeAssembler()
                    try walk.run(&assembler)
                }
            }
            #expect(try view.sizeEstimate(at: "b", upTo: .max) == 5004)
            #expect(try view.sizeEstimate(at: "a", upTo: .max) == 100 * (6 + 10 + 4))
            let partial = try view.sizeEstimate(at: "a", upTo: 50)
            #expect(partial > 50 && partial <= 80)
        }
    }

    // MARK: Leaves

    @Test func aLeafIsVisitedWithoutItsLargeString() throws {
        let store = MemoryStore()
        let database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        let size = Leaf.stringSizeBytesMax
        let (short, long) = (String(repeating: "a", count: size), String(repeating: "a", count: size + 1))
        try database.write(
            TreeWrite(("short", Node(.string(short))), ("long", Node(.string(long))), ("n", 7), ("inner/x", 1)))
        // A leaf's large string is stored elsewhere, and isn't read.
        try store.write { transaction throws(Status) in try transaction.delete(.documents, PathCode.location("long")) }
        let view = try database.view()
        defer { view.close() }
        #expect(try view.leaf(at: "short") == .value(.string(short)))
        #expect(try view.leaf(at: "long") == .largeString(sizeBytes: size + 1))
        #expect(try view.leaf(at: "n") == .value(.integer(7)))
        #expect(try view.leaf(at: "inner") == nil)
        #expect(try view.leaf(at: "none") == nil)
        #expect(throws: Status.self) { _ = try view.value(at: "long") }
    }

    // MARK: Journal

    @Test func theJournalOutlivesTheDatabase() throws {
        let store = try LastingStore(.sqlite)
        func journal(_ changes: [(String, String, [UInt8]?)], _ node: Node? = nil, end: [String] = []) -> TreeWrite {
            TreeWrite(
                changes: node.map { [TreeChange(path: "n", node: $0)] } ?? [], nowMilliseconds: 0,
                journal: changes.map { JournalChange(session: $0.0, entry: $0.1, record: $0.2) }
                    + end.map { JournalChange.end($0) })
        }
        var database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        try database.write(
            journal([
                ("one", "", [1]), ("one", "a/b", [2]), ("two", "x", []), ("two", "y", [1]), ("tw", "x", [8]),
                ("two-", "", [9]), ("e\u{301}", "e\u{301}", [3]),
            ]))
        try database.write(
            journal(
                [("one", "a/b", [1, 1]), ("one", "a", []), ("one", "", nil), ("\u{e9}", "", [4])], 7, end: ["two"]))
        database.close()
        database = try TreeDatabase(name: "test", store: store, clock: SystemClock())
        let kept = try database.read { try $0.journal() }
        let sessions = ["e\u{301}", "one", "tw", "two-", "\u{e9}"]
        #expect(kept.map { Array($0.session.utf8) } == sessions.map { Array($0.utf8) })
        #expect(kept.map { $0.records.map(\.record) } == [[[3]], [[], [1, 1]], [[8]], [[9]], [[4]]])
        #expect(kept.map { $0.records.map { Array($0.entry.utf8).count } } == [[3], [1, 3], [1], [0], [0]])
        #expect(try database.read { try $0.node(at: .root) } == tree("{\"n\":7}"))
    }
}
