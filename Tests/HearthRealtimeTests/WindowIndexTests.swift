@testable import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestSupport
import HearthTree
import HearthTreeStorage
import Testing

@testable import HearthRealtimeServer

@Suite struct WindowIndexTests {
    private let path: TreePath = "p"

    private func write(_ changes: [TreeChange], _ database: TreeDatabase) {
        let done = Latch()
        database.submit(TreeWrite(changes: changes, nowMilliseconds: 0)) { _ in done.open() }
        done.wait()
    }

    /// The index finds the windows that a check of each window finds, and a few whose bounds exclude just that child.
    @Test(arguments: TestRun.numbers(8))
    func findsTheSameWindowsAsAFullScan(_ seed: UInt64) throws {
        var trees = WindowTrees(seed)
        let database = try TreeDatabase(name: "t", store: MemoryStore(), clock: SystemClock())
        defer { database.close() }
        let location = HubLocation(path: path)
        var model = trees.children(60)
        write([TreeChange(path: path, node: model)], database)
        for step in 0..<80 {
            _ = location.window(of: trees.query())
            if trees.random.below(3) == 0, let window = location.windows.values.randomElement(using: &trees.random) {
                location.forget(window)
            }
            let changes = trees.changes(at: path)
            let node = inner(["p": model]).applying(changes).child("p")
            defer { model = node }
            let before = try database.view()
            write(changes, database)
            let after = try database.view()
            defer {
                before.close()
                after.close()
            }
            if changes.contains(where: { $0.path == path }) { continue }
            let children = TouchedChildren(path, changes)
            try children.read(before: before, for: location.filed)
            try children.read(after: after, for: location.filed)
            let found = location.filed.concerned(by: children)
            var asked = Set<TreeQuery>()
            for (window, keys) in found {
                #expect(asked.insert(window.query).inserted, "seed \(seed), step \(step)")
                for key in keys { #expect(children.keys.contains(key), "seed \(seed), step \(step)") }
                #expect(Set(keys).count == keys.count, "seed \(seed), step \(step)")
            }
            for query in location.windows.keys {
                let keys = children.keys.filter { key in
                    [model.child(key), node.child(key)].contains { (child: Node) in
                        !child.isEmpty && query.contains(key, child)
                    }
                }
                let foundKeys = found.first { $0.window.query == query }?.keys ?? []
                #expect(Set(keys).isSubset(of: foundKeys), "seed \(seed), step \(step), \(query)")
                let isExact = [query.start, query.end].allSatisfy { bound in
                    bound.map { $0.isInclusive && ($0.value?.string?.utf8.count ?? 0) <= 256 } ?? true
                }
                if isExact { #expect(Set(keys) == Set(foundKeys), "seed \(seed), step \(step), \(query)") }
            }
        }
        for window in Array(location.windows.values) { location.forget(window) }
        #expect(location.isEmpty)
        #expect(location.filed.paths.isEmpty)
    }
}

/// However many windows a location has, a commit visits those in whose range a child was or is.
@Suite struct ManyWindowsTests {
    private let path: TreePath = "people"

    /// The windows that are visited when the age of one of 20 people changes from 4 to 15.
    private func asked(_ queries: [TreeQuery]) throws -> Set<TreeQuery> {
        let database = try TreeDatabase(name: "t", store: MemoryStore(), clock: SystemClock())
        defer { database.close() }
        let begun = Countdown(2)
        database.setIndexes([TreeIndexDefinition(pattern: ["people"], index: .child("age"))]) { _ in begun.signal() }
        func write(_ path: TreePath, _ node: Node, _ done: Countdown) {
            let change = TreeChange(path: path, node: node)
            database.submit(TreeWrite(changes: [change], nowMilliseconds: 0)) { _ in done.signal() }
        }
        write(
            path, Node(children: (0..<20).map { (TreeKey("p\($0)"), inner(["age": Node(.integer(Int64($0)))])) }), begun
        )
        begun.wait()
        while database.isBuilding {}
        let before = try database.view()
        defer { before.close() }
        let location = HubLocation(path: path)
        for query in queries {
            let window = location.window(of: query)
            let reading = RealtimeSharedQuery.Reading(
                version: before.version, window: try RealtimeSharedQuery.read(query, path, before))
            #expect(try window.begin(with: reading, before))
            location.hasChanged(window)
        }
        let done = Countdown(1)
        write("people/p4/age", 15, done)
        done.wait()
        let after = try database.view()
        defer { after.close() }
        let children = TouchedChildren(path, [TreeChange(path: "people/p4/age", node: 15)])
        try children.read(before: before, for: location.filed)
        try children.read(after: after, for: location.filed)
        return Set(location.filed.concerned(by: children).map(\.window.query))
    }

    private func query(_ index: TreeQuery.Index, from start: Int, to end: Int? = nil, limit: Int? = nil) -> TreeQuery {
        var query = TreeQuery()
        query.index = index
        query.start = TreeQuery.Bound(value: .integer(Int64(start)), key: .min)
        query.end = end.map { TreeQuery.Bound(value: .integer(Int64($0)), key: .max) }
        query.limit = limit
        return query
    }

    @Test(arguments: [100, 1000, 10_000])
    func visitsOnlyRangesOfTheChild(count: Int) throws {
        let queries = (0..<count).map { query(.child("age"), from: $0 * 3, to: $0 * 3 + 2) }
        #expect(try asked(queries) == [queries[1], queries[5]])
    }

    @Test(arguments: [100, 1000, 10_000])
    func visitsOnlyPathsOfTheChild(count: Int) throws {
        let queries = (0..<count).map { query(.child(TreePath(keys: [$0 == 7 ? "age" : TreeKey("f\($0)")])), from: 0) }
        #expect(try asked(queries) == [queries[7]])
    }

    /// A window with a limit of 1 has a reserve of 11: changes behind that do not affect it.
    @Test(arguments: [100, 1000, 10_000])
    func visitsOnlyFullWindowsThatItReaches(count: Int) throws {
        let last = (0..<count).map { number in
            var query = TreeQuery()
            query.index = .child("age")
            query.start = TreeQuery.Bound(value: .double(-1 - Double(number)), key: .min)
            query.limit = 1
            query.isLimitedToLast = true
            return query
        }
        // They have 19 to 8: 15 is in the reserve of all.
        #expect(try asked(last).count == count)
        let later = (0..<count).map { query(.child("age"), from: 16 + $0, limit: 1) }
        let first = query(.child("age"), from: 3, limit: 1)
        #expect(try asked(later + [first]) == [first])
    }
}

@Suite struct SortedPositionsTests {
    private func position(_ number: Int) -> FilteredWindow.Position {
        FilteredWindow.Position(value: .scalar(.integer(Int64(number / 3))), key: TreeKey("k\(number)"))
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func remainsInOrder(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let isReversed = seed % 2 == 0
        var model: Set<Int> = []
        var positions = SortedPositions([], isReversed: isReversed)
        for _ in 0..<4000 {
            let number = random.below(3000)
            if random.below(3) > 0 {
                positions.insert(position(number))
                model.insert(number)
            } else {
                positions.remove(position(number))
                model.remove(number)
            }
        }
        var wanted = model.map { position($0) }.sorted { left, right in
            let order = TreeIndexValue.compare(left.value, right.value)
            return order != 0 ? order < 0 : left.key < right.key
        }
        #expect(
            SortedPositions(wanted, isReversed: isReversed).prefix(.max) == (isReversed ? wanted.reversed() : wanted))
        if isReversed { wanted.reverse() }
        #expect(positions.count == model.count, "seed \(seed)")
        #expect(positions.prefix(.max) == wanted, "seed \(seed)")
        for number in 0..<3000 {
            #expect(positions.contains(position(number)) == model.contains(number), "seed \(seed)")
        }
        for _ in 0..<50 {
            let low = random.below(wanted.count)
            let high = low + random.below(700)
            var found: [FilteredWindow.Position] = []
            positions.forEach(in: low..<high) { found.append($0) }
            #expect(found == Array(wanted[low..<min(high, wanted.count)]), "seed \(seed)")
            #expect(positions.at(low) == wanted[low], "seed \(seed)")
        }
        positions.truncate(to: wanted.count / 3)
        #expect(positions.prefix(.max) == Array(wanted.prefix(wanted.count / 3)), "seed \(seed)")
        #expect(positions.last == wanted.prefix(wanted.count / 3).last, "seed \(seed)")
        positions.truncate(to: 0)
        #expect(positions.isEmpty && positions.last == nil)
    }

    /// Whatever the size of a window, the cost of a change depends on what it touches.
    @Test func aChangeOfALargeWindowCostsWhatItTouches() {
        func steps(_ count: Int, limit: Int?, changed: Int) -> Int {
            var random = SeededGenerator(seed: 7)
            var query = TreeQuery()
            query.index = .value
            query.limit = limit
            let positions = (0..<count).map {
                FilteredWindow.Position(value: .scalar(.integer(Int64($0) * 10)), key: TreeKey("k\($0)"))
            }
            var window = FilteredWindow(query, positions: positions, isComplete: true, keepsAll: true)
            let before = window.steps
            for _ in 0..<50 {
                var keys: Set<Int> = []
                while keys.count < changed { keys.insert(random.below(count)) }
                let touched = keys.map {
                    FilteredWindow.Touched(
                        key: TreeKey("k\($0)"), before: .scalar(.integer(Int64($0) * 10)), after: .scalar(.bool(true)))
                }
                _ = window.apply(touched)
                _ = window.apply(
                    touched.map { FilteredWindow.Touched(key: $0.key, before: $0.after, after: $0.before) })
            }
            return window.steps - before
        }
        for limit in [nil, 20, 5000] {
            let few = steps(10_000, limit: limit, changed: 10)
            #expect(steps(100_000, limit: limit, changed: 10) < 2 * few, "limit \(limit ?? 0)")
            #expect(steps(100_000, limit: limit, changed: 100) < 12 * steps(100_000, limit: limit, changed: 10))
        }
    }
}
