import HearthModel
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthDatabase

/// The CPU time of this thread for n objects of a kind: ten times as many must cost about ten times as much.
@Suite("The engine's growth", .serialized)
struct EngineGrowthTests {
    static let list: TreePath = "list"

    /// - Parameter run: does something n times with an engine that it prepares, and measures it by `bench.measure`.
    private func expectLinear(
        _ name: String, from few: Int = 100, times factor: Int = 10, onDisk: Bool = false,
        _ run: (GrowthBench, Int) throws -> Void
    ) throws {
        func secondsEach(_ count: Int) throws -> Double {
            let folder = onDisk ? TemporaryFolder() : nil
            let bench = try GrowthBench(folder: folder?.path)
            try run(bench, count)
            bench.engine.close(.closed)
            return bench.seconds / Double(count)
        }
        let counts = [few, few * factor] + (growthFactorMore.map { [few * factor * $0] } ?? [])
        var seconds = try counts.map(secondsEach)
        // The minimum of several runs: other load on the machine only adds. Many are measured again if they took too long.
        for _ in 0..<3 { seconds[0] = min(seconds[0], try secondsEach(few)) }
        for _ in 0..<3 where seconds[1] >= 3 * seconds[0] {
            seconds[1] = min(seconds[1], try secondsEach(few * factor))
        }
        if growthFactorMore != nil {
            let figures = zip(counts, seconds).map { "\($0): \(Int($1 * Double($0) * 1000)) ms" }
            print("growth: \(name): \(figures.joined(separator: ", "))")
        }
        #expect(seconds[1] < 3 * seconds[0], "\(name): \(seconds) s each")
    }

    // MARK: Writes

    enum Kind: CaseIterable { case set, increment, push, priority, update }

    /// Many writes of a kind at an observed location, which wait and are accepted, refused or cancelled.
    enum Ending: CaseIterable { case none, accepted, refused, purged }

    @Test(arguments: Kind.allCases, Ending.allCases)
    func writes(_ kind: Kind, _ ending: Ending) throws {
        try expectLinear("\(kind) \(ending)") { bench, count in
            bench.observe(Self.list)
            bench.answerListens(tree([("a", Node(1))]))
            bench.measure(if: ending == .none) {
                for number in 0..<count { bench.write(kind, number) }
            }
            bench.measure(if: ending != .none) { bench.end(ending) }
            #expect(ending == .none || bench.answers == count)
            #expect(ending == .none || bench.engine.sync.writes.isEmpty)
        }
    }

    @Test func refusedIncrementsBetweenOtherWrites() throws {
        try expectLinear("increments between other writes, refused") { bench, count in
            bench.observe(Self.list)
            bench.answerListens(Node(1))
            for number in 0..<count { bench.write(number % 2 == 0 ? .increment : .set, number) }
            bench.measure { bench.end(.refused) }
            #expect(bench.answers == count)
        }
    }

    /// Only the written data of the location is known; an observer of all data above it sees it, too.
    @Test(arguments: [TreePath.root, "list"])
    func pushesToAnUnknownLocation(_ path: TreePath) throws {
        try expectLinear("pushes, unknown, observed at \(path)") { bench, count in
            bench.observe(path)
            bench.measure { for number in 0..<count { bench.write(.push, number) } }
        }
    }

    @Test("Pushes below the observed location", arguments: Ending.allCases)
    func pushesBelow(_ ending: Ending) throws {
        try expectLinear("pushes, observed above, \(ending)") { bench, count in
            bench.observe(.root)
            bench.answerListens(tree([("list", tree([("a", Node(1))], priority: 5))], priority: 7))
            bench.measure(if: ending == .none) { for number in 0..<count { bench.write(.push, number) } }
            bench.measure(if: ending != .none) { bench.end(ending) }
        }
    }

    @Test("A location that is set again and again, and its children between")
    func mixed() throws {
        for ending in Ending.allCases {
            try expectLinear("set and children, \(ending)", from: 400) { bench, count in
                bench.observe(Self.list)
                bench.answerListens(tree([("a", Node(1))]))
                bench.measure(if: ending == .none) {
                    for number in 0..<count / 2 {
                        bench.engine.set(tree([("a", Node(2))]), at: Self.list) { _ in bench.answers += 1 }
                        bench.write(.push, number)
                    }
                }
                bench.measure(if: ending != .none) { bench.end(ending) }
            }
        }
    }

    // MARK: Limits

    static let queries: [TreeQuery] = [
        .ordered(by: .key, last: 20), .ordered(by: .priority, last: 20), .ordered(by: .child("n"), first: 20),
        .ordered(by: .value, last: 20), .ordered(by: .child("n"), last: 100_000), .ordered(by: .child("n")),
        .keys(from: "-"),
    ]

    /// Where all of the location is known, and where only the query's window is.
    @Test(arguments: queries.indices, [Ending.none, .accepted, .refused])
    func pushesBesideAQuery(_ query: Int, _ ending: Ending) throws {
        let query = Self.queries[query]
        for isWhole in [false, true] {
            try expectLinear(
                "pushes beside \(query.index) \(query.limit ?? 0), whole \(isWhole), \(ending)", from: 50
            ) { bench, count in
                if isWhole { bench.observe(Self.list) }
                bench.observe(Self.list, query)
                bench.answerListens(tree([("a", tree([("n", Node(1))]))]))
                bench.measure(if: ending == .none) {
                    for number in 0..<count { bench.write(.push, number) }
                }
                bench.measure(if: ending != .none) { bench.end(ending) }
            }
        }
    }

    // MARK: Reads

    @Test func readsBesideObservers() throws {
        try expectLinear("reads") { bench, count in
            for number in 0..<count { bench.observe(Self.list.child(TreeKey(number))) }
            bench.answerListens(Node(1))
            bench.measure {
                for number in 0..<count {
                    for path in [Self.list.child(TreeKey(number)), "other"] {
                        bench.engine.get(TreeQuery(), at: path) { _ in bench.answers += 1 }
                    }
                }
                bench.answerReads()
            }
            #expect(bench.answers == 2 * count)
        }
    }

    // MARK: Observers

    enum Location: CaseIterable { case oneQuery, manyQueries, siblings, siblingsBelow }

    @Test(arguments: Location.allCases)
    func observers(_ location: Location) throws {
        try expectLinear("observers, \(location)") { bench, count in
            if location == .siblingsBelow { bench.observe(Self.list) }
            bench.answerListens(Node(1))
            var ids: [ObserverID] = []
            bench.measure {
                for number in 0..<count {
                    let isOne = location == .oneQuery || location == .manyQueries
                    let path = isOne ? Self.list : Self.list.child(TreeKey(number))
                    let query = location == .manyQueries ? TreeQuery.ordered(by: .key, last: number + 1) : TreeQuery()
                    ids.append(bench.observe(path, query))
                }
                bench.answerListens(Node(1))
                for id in ids { bench.engine.remove(id) }
            }
        }
    }

    @Test func writesBesideObserversOfOtherEvents() throws {
        try expectLinear("writes beside observers of other events") { bench, count in
            for _ in 0..<count { bench.observe(Self.list, kinds: .childRemoved) }
            bench.answerListens(Node(1))
            bench.measure { for number in 0..<count { bench.write(.push, number) } }
        }
    }

    // MARK: Transactions

    @Test(arguments: [true, false], [true, false])
    func transactions(_ isOneLocation: Bool, _ isVisible: Bool) throws {
        try expectLinear("transactions, one location \(isOneLocation), visible \(isVisible)") { bench, count in
            bench.observe(Self.list)
            bench.answerListens(tree([("0", Node(1))]))
            bench.measure {
                for number in 0..<count {
                    bench.engine.runTransaction(
                        at: Self.list.child(TreeKey(isOneLocation ? 0 : number)), localEvents: isVisible,
                        update: { _ in Node(Scalar.integer(Int64(number))) }, completion: { _ in bench.answers += 1 })
                }
                bench.answerWrites()
            }
            #expect(bench.answers == count)
        }
    }

    @Test func transactionsGivenUp() throws {
        try expectLinear("transactions given up") { bench, count in
            for number in 0..<count {
                bench.engine.runTransaction(
                    at: Self.list.child(TreeKey(number / 2)), localEvents: true, update: { _ in Node(1) },
                    completion: { _ in bench.answers += 1 })
            }
            bench.measure { bench.engine.purgeOutstandingWrites() }
            #expect(bench.answers == count)
        }
    }

    @Test func writesBesideTransactions() throws {
        try expectLinear("writes beside transactions") { bench, count in
            for number in 0..<count {
                bench.engine.runTransaction(
                    at: Self.list.child(TreeKey(number)), localEvents: true, update: { _ in Node(1) },
                    completion: { _ in bench.answers += 1 })
            }
            bench.measure {
                for number in 0..<count { bench.engine.set(Node(1), at: TreePath("other/\(number)")) { _ in } }
            }
        }
    }

    // MARK: The disk

    @Test("Writes that the disk keeps", arguments: [Ending.none, .accepted, .purged], [true, false])
    func keptWrites(_ ending: Ending, isObserved: Bool) throws {
        try expectLinear("kept writes, observed \(isObserved), \(ending)", onDisk: true) { bench, count in
            if isObserved { bench.observe(Self.list) }
            bench.answerListens(Node(1))
            bench.measure(if: ending == .none) { for number in 0..<count { bench.write(.push, number) } }
            bench.measure(if: ending != .none) { bench.end(ending) }
        }
    }

    @Test(arguments: [Location.manyQueries, .siblings])
    func keptQueries(_ location: Location) throws {
        try expectLinear("kept queries, \(location)", onDisk: true) { bench, count in
            var ids: [ObserverID] = []
            bench.measure {
                for number in 0..<count {
                    let path = location == .manyQueries ? Self.list : Self.list.child(TreeKey(number))
                    ids.append(bench.observe(path, .ordered(by: .key, last: number + 1)))
                }
                bench.answerListens(tree([("a", Node(1))]))
                for id in ids { bench.engine.remove(id) }
            }
        }
    }

    // MARK: Connections

    /// The connection's own state: listens that are added, sent, answered and removed; writes that are sent twice.
    @Test(arguments: [true, false])
    func outbox(_ isOneLocation: Bool) throws {
        try expectLinear("outbox, one location \(isOneLocation)") { bench, count in
            var outbox = WireOutbox()
            let keys = (0..<count).map { number in
                WireOutbox.ListenKey(
                    path: isOneLocation ? Self.list : Self.list.child(TreeKey(number)),
                    query: .ordered(by: .key, last: number + 1))
            }
            bench.measure {
                for key in keys {
                    outbox.listen(key, tag: 1, hash: { ListenHash(simple: "") }, done: { _ in })
                    outbox.write(.cancel(key.path), done: { _ in bench.answers += 1 })
                    outbox.write(.put(key.path, Node(1), hash: "h"), done: { _ in bench.answers += 1 })
                }
                outbox.connectionDidBegin()
                var listens: [Int] = []
                var sent = 0
                for _ in 0..<2 {
                    listens = []
                    while let item = outbox.next() {
                        sent += 1
                        if case .listen(let number) = item { listens.append(number) }
                    }
                    for fail in outbox.connectionDidEnd() { fail(WireFailure(WireFailure.disconnected)) }
                    outbox.connectionDidBegin()
                }
                #expect(sent == 5 * count && bench.answers == count)
                for number in listens {
                    _ = outbox.hold {}
                    outbox.listenDidAnswer(number)
                }
                #expect(outbox.takeHeldAnswers().count == count)
                for key in keys {
                    for listen in outbox.listens(at: key.path, key.query) { outbox.removeListen(listen.number) }
                }
                for write in outbox.takeAllWrites() { write.done(.cancelled) }
            }
            #expect(outbox.listens.isEmpty && bench.answers == 2 * count)
        }
    }

    @Test func reconnecting() throws {
        try expectLinear("reconnecting") { bench, count in
            for number in 0..<count { bench.observe(Self.list.child(TreeKey(number))) }
            for number in 0..<count { bench.increment(Self.list.child(TreeKey(number))) }
            bench.measure {
                bench.engine.connectionDidConnect()
                bench.answerListens(Node(1))
                bench.answerWrites()
            }
        }
    }

    @Test func writesOnDisconnect() throws {
        try expectLinear("writes on disconnect") { bench, count in
            bench.observe(Self.list)
            bench.observe("windows", .ordered(by: .key, last: 20))
            for number in 0..<count { bench.observe(TreePath("other/\(number)"), .ordered(by: .key, last: 20)) }
            bench.engine.connectionDidConnect()
            bench.answerListens(tree([("a", Node(1))]))
            bench.measure {
                for number in 0..<count {
                    bench.engine.onDisconnectSet(Node(1), at: Self.list.child(TreeKey(number))) { _ in }
                    bench.engine.onDisconnectSet(Node(1), at: TreePath("windows/\(number)")) { _ in bench.answers += 1 }
                }
                bench.engine.connectionDidDisconnect()
            }
            #expect(bench.answers == count)
        }
    }
}

private func tree(_ children: [(TreeKey, Node)], priority: Scalar? = nil) -> Node {
    Node(children: children, priority: priority)
}

/// Set to measure a hundred times as many, too, and to print the figures.
private let growthFactorMore = getenv("HEARTH_GROWTH_MORE").flatMap { Int(String(cString: $0)) }

/// An engine whose connection answers on request, at a constant cost.
final class GrowthBench {
    let connection = GrowthConnection()
    let engine: DatabaseEngine
    private(set) var seconds = 0.0
    var answers = 0

    init(folder: String? = nil) throws {
        let environment = DatabaseEngine.Environment(now: { 1 }, schedule: { _, _ in {} }, report: { _ in })
        engine = try DatabaseEngine(connection: connection, environment: environment, folder: folder)
        connection.delegate = engine
    }

    func measure(if isWanted: Bool = true, _ body: () throws -> Void) rethrows {
        let start = threadSeconds()
        try body()
        if isWanted { seconds += threadSeconds() - start }
    }

    @discardableResult
    func observe(
        _ path: TreePath, _ query: TreeQuery = TreeQuery(), kinds: EngineEventKinds = [.child, .value]
    ) -> ObserverID {
        engine.observe(query, at: path, kinds: kinds, onEvent: { _ in }, onCancel: { _ in })
    }

    func increment(_ path: TreePath) {
        engine.set(Node(.deferred(.increment(1))), at: path) { _ in self.answers += 1 }
    }

    func write(_ kind: EngineGrowthTests.Kind, _ number: Int) {
        let list = EngineGrowthTests.list
        let done = { (_: WireFailure?) in self.answers += 1 }
        let value = Node(Scalar.integer(Int64(number * 7919 % 10_007)))
        switch kind {
        case .set: engine.set(value, at: list, completion: done)
        case .increment: increment(list)
        case .push:
            let key = TreeKey("-N" + String(1_000_000 + number))
            engine.set(
                tree([("n", value)], priority: number % 3 == 0 ? value.value : nil), at: list.child(key),
                completion: done)
        case .priority: engine.setPriority(value, at: list, completion: done)
        case .update:
            engine.update([("a", value), (TreePath(keys: [TreeKey(number)]), value)], at: list, completion: done)
        }
    }

    func end(_ ending: EngineGrowthTests.Ending) {
        switch ending {
        case .none: break
        case .accepted: answerWrites()
        case .refused: answerWrites(WireFailure("permission_denied"))
        case .purged: engine.purgeOutstandingWrites()
        }
    }

    func answerListens(_ node: Node) { connection.answerListens(node) }

    func answerReads() { connection.answerReads(Node(1)) }

    /// Answers each write in order. The resulting server data comes before the answer.
    func answerWrites(_ failure: WireFailure? = nil) { connection.answerWrites(failure) }
}
