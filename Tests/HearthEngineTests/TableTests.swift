import HearthModel
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthEngine

/// The tables in memory against a sorted array, at sizes that have several levels, with versions that are held.
struct TableTests {
    @Test(arguments: TestRun.fixedSeedsAndNewOne)
    func agreesWithASortedArray(seed: UInt64) throws {
        print("seed \(seed); HEARTH_TEST_SEED=\(seed) repeats it")
        var random = SeededGenerator(seed: seed)
        let map = TableMap()
        var model = TableModel()
        var held: [(version: TableVersion, model: TableModel)] = []
        // Grows, then shrinks to nothing.
        for round in 0..<200 {
            var draft = model
            let isRefused = random.isOne(in: 5)
            try? map.write { editor, root throws(Refusal) in
                for _ in 0..<random.below(200) {
                    let number = random.below(10_000)
                    let key = random.isOne(in: 100) ? key(number) + random.bytes(3000) : key(number)
                    if random.below(200) < round {
                        let isThere = key.withKey { editor.remove(&root, $0) }
                        #expect(isThere == (draft.removeValue(forKey: key) != nil))
                    } else {
                        let value = random.bytes(random.below(4))
                        key.withKey { key in value.withUnsafeBytes { editor.put(&root, key, $0) } }
                        draft[key] = value
                    }
                }
                if random.isOne(in: 50) {
                    editor.removeAll(&root)
                    draft = [:]
                }
                if isRefused { throw Refusal() }
            }
            if !isRefused { model = draft }
            if random.isOne(in: 3) { held.append((map.table.present, model)) }
            if held.count > 8 {
                let ended = held.remove(at: random.below(held.count))
                try check(ended.version, ended.model, &random)
            }
        }
        for entry in held { try check(entry.version, entry.model, &random) }
        try check(map.table.present, model, &random)
        held = []
        map.expectNothingIsLeft()
    }

    @Test func aFeedGrowsAtItsEndAndShrinksAtItsFront() throws {
        var random = SeededGenerator(seed: 1)
        let map = TableMap()
        var model = TableModel()
        for number in 0..<8_000 {
            map.put(key(number), [])
            model[key(number)] = []
            if number >= 2000 {
                map.remove(key(number - 2000))
                model[key(number - 2000)] = nil
            }
        }
        try check(map.table.present, model, &random)
        #expect(map.leafCount < 2000 / TableNode.capacity + 5)
        map.expectNothingIsLeft()
    }

    @Test(arguments: [false, true])
    func mergedNodesStayWholeInVersionsThatAreHeld(fromTheEnd: Bool) throws {
        var random = SeededGenerator(seed: 1)
        let map = TableMap()
        var model = TableModel()
        for number in 0..<1500 {
            map.put(key(number), [1])
            model[key(number)] = [1]
        }
        // Nodes with few entries, which will fit into their neighbours.
        for number in 0..<1500 where !number.isMultiple(of: 3) {
            map.remove(key(number))
            model[key(number)] = nil
        }
        var held = [(map.table.present, model)]
        for step in 0..<1500 {
            let doomed = key(fromTheEnd ? 1499 - step : step)
            map.remove(doomed)
            model[doomed] = nil
            if step.isMultiple(of: 10) { held.append((map.table.present, model)) }
        }
        for (version, model) in held { try check(version, model, &random) }
        held = []
        map.expectNothingIsLeft()
    }

    @Test func aVersionThatIsHeldKeepsWhatItShowsAndNothingElse() {
        let map = TableMap()
        for number in 0..<5000 { map.put(key(number), [1]) }
        let before = map.table.blockCount
        let held = map.table.present
        for round in 0..<20 {
            for number in 0..<5000 { map.put(key(number), [UInt8(round)]) }
        }
        // Its own blocks, those of the present version, and what the last commits have not freed yet.
        #expect(map.table.blockCount < 2 * before + 1000)
        withExtendedLifetime(held) {}
    }

    @Test func whatALongSnapshotKeptIsFreedInPieces() {
        let map = TableMap()
        map.writeAll(0..<50_000, [1])
        let all = map.table.blockCount
        var held: TableVersion? = map.table.present
        map.writeAll(0..<50_000, [2])
        #expect(map.table.blockCount > all * 3 / 2)
        withExtendedLifetime(held) {}
        held = nil
        let kept = map.table.blockCount
        map.put(key(1), [3])
        #expect(map.table.blockCount > kept - 1000)
        map.expectNothingIsLeft()
    }

    /// What is kept for a version is about as much as it shows besides the present one.
    @Test(arguments: [false, true]) func bytesThatAreKeptAreCounted(byClearing: Bool) {
        let map = TableMap()
        let value = [UInt8](repeating: 1, count: 100)
        for number in 0..<5000 { map.put(key(number), value) }
        // What the last commit has replaced.
        #expect(map.table.keptBytes < 5000)
        var held: TableVersion? = map.table.present
        // Entries have 16 bytes and a key of 8 besides.
        let least = 5000 * 124
        if byClearing { map.removeAll(bytes: least) }
        for round in 0..<5 {
            for number in 0..<5000 { map.put(key(number), [UInt8(round)]) }
            let kept = map.table.keptBytes
            #expect(kept > least * 9 / 10 && kept < least * 3 / 2, "\(kept) of \(least)")
        }
        withExtendedLifetime(held) {}
        held = nil
        map.put(key(1), [3])
        // What the last commit has replaced.
        #expect(map.table.keptBytes < 5000)
        map.expectNothingIsLeft()
    }

    /// Keys whose common start is longer than what a node stores of it.
    @Test func keysMayShareMoreThanANodeStores() throws {
        var random = SeededGenerator(seed: 3)
        let map = TableMap()
        var model = TableModel()
        let start = [UInt8](repeating: 9, count: 200)
        for number in 0..<500 {
            let key = start + key(number)
            map.put(key, [1])
            model[key] = [1]
        }
        for length in [0, 1, 39, 40, 41, 199, 200] {
            map.put(Array(start[..<length]), [2])
            model[Array(start[..<length])] = [2]
        }
        try check(map.table.present, model, &random)
    }

    // MARK: Checks

    private func check(_ version: TableVersion, _ model: TableModel, _ random: inout SeededGenerator) throws {
        let tree = TableTree(version.roots[0])
        if let root = version.roots[0] {
            var depths: Set<Int> = []
            checkNode(TableNode(root), lower: nil, upper: nil, depth: 0, &depths)
            #expect(depths.count == 1)
        }
        let sorted = model.sorted { $0.key.precedes($1.key) }
        #expect(tree.count == sorted.count)
        for reverse in [false, true] {
            let snapshot = MemoryStoreSnapshot(version, StoreLife())
            let cursor = MemoryStoreCursor(
                snapshot, Keyspace.allCases[0], .all, reverse: reverse, values: true, dropping: 0)
            let expected = sorted.map { Row(key: $0.key, value: $0.value) }
            #expect(try rows(cursor) == (reverse ? expected.reversed() : expected))
        }
        for _ in 0..<20 {
            let key = key(random.below(10_000))
            #expect(key.withKey { tree.find($0).map { [UInt8]($0.value) } } == model[key])
            #expect(key.withKey { tree.rank($0) } == sorted.count { $0.key.precedes(key) })
        }
    }

    private func checkNode(
        _ node: TableNode, lower: [UInt8]?, upper: [UInt8]?, depth: Int, _ depths: inout Set<Int>
    ) {
        let keys = (0..<node.count).map { node.key($0).bytes }
        #expect(zip(keys, keys.dropFirst()).allSatisfy { $0.precedes($1) })
        #expect(keys.allSatisfy { key in !(lower.map { key.precedes($0) } ?? false) })
        #expect(keys.allSatisfy { key in upper.map { key.precedes($0) } ?? true })
        #expect(node.count <= TableNode.capacity && node.entryCount > 0)
        if node.isLeaf {
            depths.insert(depth)
            return
        }
        #expect(node.entryCount == (0...keys.count).reduce(0) { $0 + node.child($1).entryCount })
        for index in 0...keys.count {
            checkNode(
                node.child(index), lower: index == 0 ? lower : keys[index - 1],
                upper: index == keys.count ? upper : keys[index], depth: depth + 1, &depths)
        }
    }
}

private typealias TableModel = [[UInt8]: [UInt8]]

private struct Refusal: Error {}

/// A table with one tree.
private final class TableMap {
    let table = Table(trees: 1)

    func write<Failure: Error>(_ body: (TableEditor, inout TableBlock?) throws(Failure) -> Void) throws(Failure) {
        var (editor, roots) = table.begin()
        do throws(Failure) {
            try body(editor, &roots[0])
        } catch {
            table.rollBack()
            throw error
        }
        table.commit(roots)
    }

    func put(_ key: [UInt8], _ value: [UInt8]) {
        write { editor, root in key.withKey { key in value.withUnsafeBytes { editor.put(&root, key, $0) } } }
    }

    func remove(_ key: [UInt8]) {
        write { editor, root in _ = key.withKey { editor.remove(&root, $0) } }
    }

    func removeAll(bytes: Int) {
        write { editor, root in editor.removeAll(&root, bytes: bytes) }
    }

    /// In one transaction.
    func writeAll(_ numbers: Range<Int>, _ value: [UInt8]) {
        write { editor, root in
            for number in numbers {
                key(number).withKey { key in value.withUnsafeBytes { editor.put(&root, key, $0) } }
            }
        }
    }

    var leafCount: Int {
        func count(_ node: TableNode) -> Int {
            node.isLeaf ? 1 : (0...node.count).reduce(0) { $0 + count(node.child($1)) }
        }
        return table.present.roots[0].map { count(TableNode($0)) } ?? 0
    }

    /// When no version but the present one is held, its blocks are all that there are.
    func expectNothingIsLeft() {
        while table.freePart() {}
        var present = 0
        TableTree(table.present.roots[0]).forEachBlock { _ in present += 1 }
        #expect(table.blockCount == present)
    }
}
