import Glibc
import HearthModel
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthDatabase

/// An observer that rebuilds the data from the events, and detects inconsistent events.
final class EventReplay {
    let path: TreePath
    let query: TreeQuery
    /// The children according to the child events, in order.
    private(set) var children: [(key: TreeKey, node: Node)] = []
    private(set) var value: Node?
    private(set) var problems: [String] = []
    private(set) var isCancelled = false
    var id: ObserverID?

    /// A refused or cancelled write may make a complete location unknown; then its value is delivered again.
    private let mayRepeat: Bool

    init(_ path: TreePath, _ query: TreeQuery, mayRepeat: Bool) {
        self.path = path
        self.query = query
        self.mayRepeat = mayRepeat
    }

    func receive(_ event: EngineEvent) {
        let key = event.path.last ?? ""
        // Within a change the kinds come in their order, and an added child does not change.
        let isNew = arriving.contains { $0.key == key } && !moved.contains { $0.key == key }
        let isNext = event.kind == .childChanged && isNew
        if event.kind.rawValue < lastKind || isNext { settle() }
        lastKind = event.kind.rawValue
        let index = children.firstIndex { $0.key == key }
        let waiting = arriving.firstIndex { $0.key == key }
        switch event.kind {
        case .childRemoved:
            guard let index else { return note("removed what isn't there", event) }
            if children[index].node != event.node { note("removed something else", event) }
            children.remove(at: index)
        case .childAdded:
            if index != nil || waiting != nil { return note("added again", event) }
            arriving.append((key, event.node, event.previousKey))
        case .childMoved:
            guard let index else { return note("moved what isn't there", event) }
            moved.append((key, children[index].node))
            children.remove(at: index)
            arriving.append((key, event.node, event.previousKey))
        case .childChanged:
            let old = moved.first { $0.key == key }?.node ?? index.map { children[$0].node }
            guard let old else { return note("changed what isn't there", event) }
            if old == event.node { note("changed to the same", event) }
            if let index { children[index].node = event.node }
        case .value:
            settle()
            if !mayRepeat, let value, value == event.node { note("the same value", event) }
            value = event.node
            checkValue(event)
        }
    }

    /// The added and moved children of one change, with the previous sibling afterwards: their positions are known only
    /// after all events.
    private var arriving: [(key: TreeKey, node: Node, previous: TreeKey?)] = []
    private var moved: [(key: TreeKey, node: Node)] = []
    private var lastKind = 0

    /// Called after the events of one change.
    func settle() {
        moved = []
        while !arriving.isEmpty {
            let next = arriving.firstIndex { entry in
                entry.previous == nil || children.contains { $0.key == entry.previous }
            }
            guard let next else {
                problems.append("\(path) \(query): nothing is in front of \(arriving.map(\.key))")
                return arriving.removeAll()
            }
            let entry = arriving.remove(at: next)
            let location = entry.previous.flatMap { key in children.firstIndex { $0.key == key } }.map { $0 + 1 } ?? 0
            children.insert((entry.key, entry.node), at: location)
        }
    }

    private func checkValue(_ event: EngineEvent) {
        let expected = query.orderedChildren(of: event.node)
        let isEqual =
            expected.count == children.count
            && zip(expected, children).allSatisfy { $0.key == $1.key && $0.node == $1.node }
        if !isEqual {
            note(
                "children \(children.map { "\($0.key):\(treeString($0.node))" }), expected \(expected.map(\.key))",
                event)
        }
    }

    func cancel() { isCancelled = true }

    private func note(_ problem: String, _ event: EngineEvent) {
        problems.append("\(path) \(query): \(problem): \(eventLine(event))")
    }

    func takeProblems() -> [String] {
        defer { problems = [] }
        return problems
    }
}

/// Random trees, locations, queries and changes, few of each so that they meet often.
struct EngineChaos {
    var random: SeededGenerator
    static let keys: [TreeKey] = ["a", "b", "c", "1", "10", "d"]

    mutating func key() -> TreeKey { random.pick(Self.keys) }

    mutating func path(_ depthMax: Int = 3) -> TreePath {
        TreePath(keys: (0..<random.below(depthMax + 1)).map { _ in self.key() })
    }

    mutating func scalar() -> Scalar {
        switch random.below(6) {
        case 0: .bool(random.below(2) == 0)
        case 1: .string(random.pick(["", "x", "y", "ä"]))
        case 2: .double(Double(random.below(5)) + 0.5)
        default: .integer(Int64(random.below(6)))
        }
    }

    mutating func priority() -> Scalar? {
        random.below(4) > 0
            ? nil : random.below(2) == 0 ? .integer(Int64(random.below(3))) : .string(random.pick(["p", "q"]))
    }

    mutating func node(depth: Int = 0) -> Node {
        let kind = random.below(10)
        if kind == 0 { return .empty }
        if depth > 1 || kind < 5 { return Node(scalar(), priority: priority()) }
        let children = (0..<random.below(4)).map { _ in (self.key(), self.node(depth: depth + 1)) }
        return Node(children: children, priority: priority())
    }

    mutating func query() -> TreeQuery {
        var query = TreeQuery()
        query.index = random.pick([.priority, .key, .value, .child("a"), .child("b/c")])
        if random.below(3) == 0 { return query }
        if random.below(2) == 0 { query.start = bound(query.index, isStart: true) }
        if random.below(3) == 0 { query.end = bound(query.index, isStart: false) }
        if random.below(2) == 0 || query.isUnfiltered {
            query.limit = 1 + random.below(3)
            query.isLimitedToLast = random.below(2) == 0
        }
        return query
    }

    private mutating func bound(_ index: TreeQuery.Index, isStart: Bool) -> TreeQuery.Bound {
        if index == .key {
            let key = self.key()
            return TreeQuery.Bound(value: .string(key.string), key: .key(key))
        }
        let value: Scalar? = random.below(4) == 0 ? nil : scalar()
        return TreeQuery.Bound(value: value, key: isStart ? .min : .max)
    }

    /// The change of a write: one location, or several of which none is an ancestor of another.
    mutating func changes() -> (path: TreePath, isMerge: Bool, changes: [TreeChange]) {
        let kind = random.below(10)
        if kind == 0 {
            let path = self.path().child(.priority)
            return (path, false, [TreeChange(path: path, node: priority().map { Node($0) } ?? .empty)])
        }
        if kind == 1 {
            let path = self.path()
            return (
                path, false, [TreeChange(path: path, node: Node(.deferred(.increment(Int64(1 + random.below(3))))))]
            )
        }
        let path = self.path()
        guard kind < 5 else { return (path, false, [TreeChange(path: path, node: node())]) }
        var changes: [TreeChange] = []
        for _ in 0..<(1 + random.below(3)) {
            var relative = self.path(2)
            if relative.isRoot { relative = TreePath(keys: [key()]) }
            if random.below(6) == 0 { relative = relative.child(.priority) }
            let location = path + relative
            let isApart = changes.allSatisfy { !$0.path.contains(location) && !location.contains($0.path) }
            guard isApart else { continue }
            let new = location.last == .priority ? priority().map { Node($0) } ?? .empty : node(depth: 1)
            changes.append(TreeChange(path: location, node: new))
        }
        return (path, true, changes)
    }
}

@Suite("The engine against a model")
struct EngineModelTests {
    /// Random observers, writes of both sides, refusals, transactions and lost connections. The child events always
    /// lead to the values. When all listens are answered, a view is the server's data with the pending writes applied.
    /// In the end it is the server's data.
    @Test(arguments: 0..<120 * TestRun.effort)
    func anyOrder(_ seed: Int) throws {
        var run = try EngineRun(UInt64(seed))
        try run.go(steps: 120)
    }
}

struct EngineRun {
    private final class Pending {
        var writes: [(id: Int, changes: [TreeChange])] = []
        var transactions = 0
        var lastID = 0
        var lines: [String] = []
    }

    private var chaos: EngineChaos
    private let fixture: EngineFixture
    private let seed: UInt64
    private var replays: [EventReplay] = []
    private let pending = Pending()
    /// Without increments and reads the expected data is known exactly.
    private let isExact: Bool
    private var comparisons = 0

    init(_ seed: UInt64) throws {
        self.seed = seed
        chaos = EngineChaos(random: SeededGenerator(seed: seed))
        fixture = try EngineFixture(connects: false)
        isExact = seed % 3 != 0
        fixture.server.random = SeededGenerator(seed: seed &+ 77)
        fixture.server.set(chaos.node(), at: .root)
        if seed % 4 == 1 {
            // Sorted by path, for reproducible runs.
            fixture.server.refuses = { $0.keys.contains("d") }
        }
    }

    mutating func go(steps: Int) throws {
        for step in 0..<steps {
            try self.step()
            try check("seed \(seed), step \(step)")
        }
        fixture.connection.connect()
        while fixture.connection.hasWork {
            fixture.connection.stepServer()
            fixture.connection.stepClient()
            for replay in replays { replay.settle() }
        }
        try check("seed \(seed), the end")
        #expect(pending.writes.isEmpty && pending.transactions == 0, "seed \(seed): all is answered")
        for replay in replays {
            let expected = replay.query.result(of: fixture.server.tree.node(at: replay.path))
            #expect(replay.value == expected, "seed \(seed): \(replay.path) \(replay.query) in the end")
        }
        #expect(!isExact || comparisons > 0 || seed >= 300, "seed \(seed): compared \(comparisons) times")
    }

    private mutating func step() throws {
        let connection = fixture.connection
        switch chaos.random.below(24) {
        case 0..<3: observe()
        case 3: if !replays.isEmpty { unobserve() }
        case 4..<8: write()
        case 8..<11:
            let changes = chaos.changes().changes
            fixture.server.commit(changes)
        case 11: if !connection.isConnected || chaos.random.below(3) == 0 { toggle() }
        case 12: if !isExact { transact() }
        case 13: if !isExact { read() }
        case 14 where seed % 5 == 2 && chaos.random.below(4) == 0: fixture.engine.purgeOutstandingWrites()
        case 14: fixture.engine.keepSynced(chaos.random.below(2) == 0, chaos.query(), at: chaos.path())
        case 15..<19: connection.stepServer()
        default: connection.stepClient()
        }
    }

    private mutating func toggle() {
        if fixture.connection.isConnected {
            fixture.connection.disconnect(arriving: chaos.random.below(4))
        } else {
            fixture.connection.connect()
        }
    }

    private mutating func observe() {
        let replay = EventReplay(
            chaos.path(2), chaos.random.below(2) == 0 ? TreeQuery() : chaos.query(),
            mayRepeat: seed % 4 == 1 || seed % 5 == 2 || !isExact)
        replay.id = fixture.engine.observe(
            replay.query, at: replay.path, kinds: [.child, .value], onEvent: { replay.receive($0) },
            onCancel: { _ in replay.cancel() })
        replays.append(replay)
    }

    private mutating func unobserve() {
        let replay = replays.remove(at: chaos.random.below(replays.count))
        if let id = replay.id { fixture.engine.remove(id) }
    }

    private mutating func write() {
        var (path, isMerge, changes) = chaos.changes()
        if isExact, changes.contains(where: { $0.node.hasDeferred }) {
            changes = changes.map { TreeChange(path: $0.path, node: $0.node.hasDeferred ? Node(3) : $0.node) }
        }
        let pending = pending
        pending.lastID += 1
        let id = pending.lastID
        pending.writes.append((id, changes))
        let done = { (_: WireFailure?) in pending.writes.removeAll { $0.id == id } }
        if isMerge {
            fixture.engine.update(changes.map { ($0.path.relative(to: path), $0.node) }, at: path, completion: done)
        } else {
            fixture.engine.set(changes[0].node, at: path, completion: done)
        }
    }

    private mutating func transact() {
        let path = chaos.path()
        let pending = pending
        let node = chaos.node(depth: 1)
        let aborts = chaos.random.below(8) == 0
        pending.transactions += 1
        fixture.engine.runTransaction(at: path, localEvents: chaos.random.below(2) == 0) { present in
            aborts ? nil : present.setting(TreeKey("a"), to: node)
        } completion: { _ in
            pending.transactions -= 1
        }
    }

    private mutating func read() {
        fixture.engine.get(chaos.query(), at: chaos.path()) { _ in }
    }

    // MARK: Invariants

    private mutating func check(_ location: String) throws {
        for replay in replays {
            replay.settle()
            let problems = replay.takeProblems()
            if !problems.isEmpty { throw ModelFailure("\(location): \(problems.joined(separator: "\n"))") }
        }
        try checkViews(location)
        guard isExact, pending.transactions == 0, !fixture.connection.isAmongMessagesOfOneVersion else { return }
        for replay in replays {
            guard let base = known(replay) else { continue }
            comparisons += 1
            let expected = seen(replay, over: base.node, isWindow: base.isWindow)
            guard replay.value == expected else {
                throw ModelFailure(
                    "\(location): \(replay.path) \(replay.query)\nshows    \(replay.value.map(treeString) ?? "none")\n"
                        + "expected \(treeString(expected))\nserver data \(treeString(base.node))\npending "
                        + pending.writes.map { "\($0.changes.map { "\($0.path) \(treeString($0.node))" })" }.joined())
            }
        }
    }

    /// Views that were updated by changes equal views that are computed from the present data.
    private func checkViews(_ location: String) throws {
        let sync = fixture.engine.sync
        var problems: [String] = []
        sync.root.forEach { point in
            for view in point.views where view.isComplete {
                let look = sync.writes.look(at: view.path, over: sync.server.completeNode(at: view.path))
                let content = sync.content(of: view, look)
                guard content.isComplete, content.isWhole == view.isMadeOfWhole else { continue }
                if view.known != content.node || view.shown != view.query.result(of: content.node) {
                    problems.append(
                        "\(location): \(view.path) \(view.query)\nhas      \(treeString(view.known))\nshows    "
                            + "\(treeString(view.shown))\nexpected \(treeString(content.node))")
                }
            }
        }
        if let problem = problems.first { throw ModelFailure(problem) }
    }

    /// The server's data that the client has for an observer, if the listen for it was ever answered.
    private func known(_ replay: EventReplay) -> (node: Node, isWindow: Bool)? {
        let listens = fixture.connection.listens
        let history = fixture.server.history
        if let whole = listens.first(where: { $0.query == nil && $0.path.contains(replay.path) }) {
            return whole.version.map { (history[$0].node(at: replay.path), false) }
        }
        guard let own = listens.first(where: { $0.path == replay.path && $0.query == replay.query }) else { return nil }
        return own.version.map { (replay.query.result(of: history[$0].node(at: replay.path)), true) }
    }

    /// Data with the pending writes applied. Of a window's other children only those are known that a write has set.
    private func seen(_ replay: EventReplay, over base: Node, isWindow: Bool) -> Node {
        let path = replay.path
        guard isWindow else {
            let whole = fold(at: path, over: base) ?? .empty
            return replay.query.result(of: whole)
        }
        if let whole = fold(at: path, over: nil) { return replay.query.result(of: whole) }
        var keys = Set(base.children.map(\.key))
        for write in pending.writes {
            for change in write.changes where path.contains(change.location) && change.location.count > path.count {
                keys.insert(change.location.keys[path.count])
            }
        }
        let children = keys.compactMap { key -> (TreeKey, Node)? in
            let present = base.child(key)
            return fold(at: path.child(key), over: present.isEmpty ? nil : present).map { (key, $0) }
        }
        return replay.query.result(of: Node(children: children))
    }

    private func fold(at path: TreePath, over base: Node?) -> Node? {
        var node = base
        for write in pending.writes {
            if let above = write.changes.first(where: { !$0.isPriority && $0.path.contains(path) }) {
                node = above.node.node(at: path.relative(to: above.path))
            } else if let present = node {
                let inside = write.changes.filter { path.contains($0.location) }
                node = present.applying(inside.map { TreeChange(path: $0.path.relative(to: path), node: $0.node) })
            }
        }
        return node
    }
}

struct ModelFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
