import HearthTestSupport
import HearthTree
import Testing

@testable import HearthDatabase

/// The lists that hold the engine's views and writes, compared with plain arrays.
@Suite("The engine's lists")
struct EngineOrderTests {
    @Test(arguments: 0..<20)
    func ascendingLists(_ seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var list = AscendingList<Int>()
        var plain: [(id: Int64, value: Int)] = []
        for step in 0..<2000 {
            let id = Int64(2 * step)
            if random.below(1000) < 400 + 30 * (seed % 6) {
                list.append(id, step)
                plain.append((id, step))
            } else if let location = plain.indices.randomElement(using: &random) {
                let position = random.below(3) == 0 ? location : random.below(2) == 0 ? 0 : plain.count - 1
                #expect(list.remove(plain[position].id) == plain.remove(at: position).value)
            } else {
                #expect(list.remove(id) == nil)
            }
            #expect(list.count == plain.count && list.isEmpty == plain.isEmpty)
            #expect(list.first?.id == plain.first?.id)
            let end = Int64(random.below(2 * step + 2))
            #expect(list.last(before: end)?.value == plain.last { $0.id < end }?.value)
            #expect(list.last { $0 % 4 == 0 }?.id == plain.last { $0.id % 4 == 0 }?.id)
            guard step % 50 == 0 else { continue }
            var seen: [Int64] = []
            list.forEach(from: end / 2, before: end) { id, _ in seen.append(id) }
            #expect(seen == plain.map(\.id).filter { $0 >= end / 2 && $0 < end })
        }
    }

    /// Changes of some of many children at a time: more than fit into one chunk.
    @Test(arguments: 0..<24)
    func views(_ seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var query = TreeQuery()
        query.index = random.pick([.priority, .key, .value, .child("n")])
        if random.below(2) == 0 { query.limit = 1 + random.below(random.pick([5, 400])) }
        query.isLimitedToLast = random.below(2) == 0
        if random.below(2) == 0, query.index != .key {
            query.start = TreeQuery.Bound(value: .integer(Int64(random.below(20))), key: .min)
        }
        let view = View(query, at: "list")
        let replay = EventReplay("list", query, mayRepeat: false)
        view.add(
            EngineObserver(
                id: ObserverID(number: 1), kinds: [.child, .value], isSingle: false, onEvent: { _ in },
                onCancel: { _ in }))
        var node = Node.empty
        for step in 0..<100 {
            var keys: Set<TreeKey> = []
            for _ in 0...random.below(step % 20 == 0 ? 300 : 3) {
                let key = TreeKey(random.below(600))
                let value = Scalar.integer(Int64(random.below(random.pick([3, 40]))))
                let priority: Scalar? = random.below(3) == 0 ? value : nil
                let new: Node =
                    switch random.below(5) {
                    case 0, 1: .empty
                    case 2: Node(children: [(TreeKey("n"), Node(value))], priority: priority)
                    default: Node(value, priority: priority)
                    }
                if new == node.child(key) || keys.contains(key) { continue }
                node = node.setting(key, to: new)
                keys.insert(key)
            }
            if step == 0 || random.below(40) == 0 {
                for event in view.update(to: node, isComplete: true).events { replay.receive(event) }
            } else {
                for event in view.update(to: node, isComplete: true, keys: keys.sorted()).events {
                    replay.receive(event)
                }
            }
            replay.settle()
            #expect(view.shown == query.result(of: node), "seed \(seed), step \(step): \(query)")
            #expect(replay.takeProblems() == [], "seed \(seed), step \(step): \(query)")
        }
    }

    /// Increments of one location, some of which are refused, show their sum after each step.
    @Test(arguments: 0..<200)
    func increments(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let isSimple = seed % 2 == 0
        let bench = try GrowthBench()
        var seen = Node.empty
        let path: TreePath = "list/count"
        _ = bench.engine.observe(
            TreeQuery(), at: path, kinds: .value, onEvent: { seen = $0.node }, onCancel: { _ in })
        var server = Node(random.pick([.integer(3), .double(0.5), .string("x"), .integer(.max - 20)]))
        bench.answerListens(server)
        var waiting: [Node] = []
        // The base of the first increment.
        var base = server
        func expected() -> Node { waiting.reduce(base) { $1.settled(nowMilliseconds: 1, old: $0) } }
        for step in 0..<120 {
            if waiting.isEmpty || random.below(2) == 0 {
                let node: Node =
                    switch random.below(isSimple ? 1 : 5) {
                    case 3: Node(.deferred(.incrementDouble(0.1)))
                    case 4: Node(100)
                    default: Node(.deferred(.increment(Int64(random.below(9)) - 2)))
                    }
                if waiting.isEmpty { base = server }
                waiting.append(node)
                bench.engine.set(node, at: path) { _ in }
            } else {
                let node = waiting.removeFirst()
                let isRefused = random.below(2) == 0
                // The server's data has arrived, and the values of the others stay as they were.
                base = isRefused ? server : node.settled(nowMilliseconds: 1, old: base)
                if !isRefused { server = node.settled(nowMilliseconds: 1, old: server) }
                if waiting.isEmpty { base = server }
                bench.connection.answerWrite(isRefused ? WireFailure("permission_denied") : nil)
            }
            #expect(seen == expected(), "seed \(seed), step \(step)")
        }
    }
}
