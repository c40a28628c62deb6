import HearthModel
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthEngine

/// The memory store's tree against a sorted array, at sizes that have several levels.
struct MemoryStoreTreeTests {
    @Test(arguments: TestRun.fixedSeedsAndNewOne)
    func agreesWithASortedArray(seed: UInt64) throws {
        print("seed \(seed); HEARTH_TEST_SEED=\(seed) repeats it")
        var random = SeededGenerator(seed: seed)
        var tree = MemoryStoreTree()
        var model: [[UInt8]: [UInt8]] = [:]
        var kept: [(tree: MemoryStoreTree, model: [[UInt8]: [UInt8]])] = []
        // Grows, then shrinks to nothing.
        for round in 0..<20 {
            for _ in 0..<1000 {
                let number = random.below(10_000)
                let key = random.isOne(in: 100) ? key(number) + random.bytes(3000) : key(number)
                if random.below(20) < round {
                    tree.remove(key)
                    model[key] = nil
                } else {
                    let value = random.bytes(random.below(4))
                    tree.put(key, value)
                    model[key] = value
                }
            }
            if round.isMultiple(of: 5) { kept.append((tree, model)) }
        }
        kept.append((tree, model))
        for key in model.keys { tree.remove(key) }
        kept.append((tree, [:]))
        for entry in kept { try check(entry.tree, entry.model, &random) }
    }

    @Test func aFeedGrowsAtItsEndAndShrinksAtItsFront() throws {
        var random = SeededGenerator(seed: 1)
        var tree = MemoryStoreTree()
        var model: [[UInt8]: [UInt8]] = [:]
        for number in 0..<8_000 {
            tree.put(key(number), [])
            model[key(number)] = []
            if number >= 2000 {
                tree.remove(key(number - 2000))
                model[key(number - 2000)] = nil
            }
        }
        try check(tree, model, &random)
        #expect(leaves(tree.root) < 2000 / MemoryStoreTree.entriesMax + 5)
    }

    @Test func changesOfOneCopyDoNotShowInAnother() {
        var first = MemoryStoreTree()
        for number in 0..<1000 { first.put(key(number), [1]) }
        var second = first
        for number in 0..<1000 {
            second.put(key(number), [2])
            first.remove(key(number * 2))
        }
        #expect(first.count == 500 && second.count == 1000)
        #expect((0..<1000).allSatisfy { second.get(key($0)) == [2] })
        #expect((0..<1000).allSatisfy { first.get(key($0)) == ($0.isMultiple(of: 2) ? nil : [1]) })
    }

    @Test(arguments: [false, true])
    func mergedNodesStayWholeInOtherCopies(fromTheEnd: Bool) throws {
        var random = SeededGenerator(seed: 1)
        var tree = MemoryStoreTree()
        var model: [[UInt8]: [UInt8]] = [:]
        for number in 0..<1500 {
            tree.put(key(number), [1])
            model[key(number)] = [1]
        }
        // Nodes with few entries, which will fit into their neighbours.
        for number in 0..<1500 where !number.isMultiple(of: 3) {
            tree.remove(key(number))
            model[key(number)] = nil
        }
        var copies = [(tree, model)]
        for step in 0..<1500 {
            let doomed = key(fromTheEnd ? 1499 - step : step)
            tree.remove(doomed)
            model[doomed] = nil
            if step.isMultiple(of: 10) { copies.append((tree, model)) }
        }
        for (tree, model) in copies { try check(tree, model, &random) }
    }

    private func check(
        _ tree: MemoryStoreTree, _ model: [[UInt8]: [UInt8]], _ random: inout SeededGenerator
    ) throws {
        var depths: Set<Int> = []
        checkNode(tree.root, lower: nil, upper: nil, depth: 0, &depths)
        #expect(depths.count == 1)
        let sorted = model.sorted { $0.key.precedes($1.key) }
        #expect(tree.count == sorted.count)
        for reverse in [false, true] {
            let cursor = MemoryStoreCursor(
                tree, .all, reverse: reverse, values: true, dropping: 0, life: MemoryStoreLife())
            let expected = sorted.map { Row(key: $0.key, value: $0.value) }
            #expect(try rows(cursor) == (reverse ? expected.reversed() : expected))
        }
        for _ in 0..<20 {
            let key = key(random.below(10_000))
            #expect(tree.get(key) == model[key])
            #expect(tree.rank(key) == sorted.count { $0.key.precedes(key) })
        }
    }

    private func checkNode(
        _ node: MemoryStoreTree.Node, lower: [UInt8]?, upper: [UInt8]?, depth: Int, _ depths: inout Set<Int>
    ) {
        let keys = (0..<node.keys.count).map { node.keys[$0] }
        let bounds = (lower.map { [$0] } ?? []) + keys
        #expect(zip(keys, keys.dropFirst()).allSatisfy { $0.precedes($1) })
        #expect(keys.allSatisfy { key in !(lower.map { key.precedes($0) } ?? false) })
        #expect(keys.allSatisfy { key in upper.map { key.precedes($0) } ?? true })
        #expect(node.entries <= MemoryStoreTree.entriesMax)
        if node.isLeaf {
            depths.insert(depth)
            #expect(node.values.count == keys.count && node.count == keys.count)
            return
        }
        #expect(node.children.count == keys.count + 1 && node.values.count == 0 && !bounds.isEmpty)
        #expect(node.count == node.children.reduce(0) { $0 + $1.count })
        for (index, child) in node.children.enumerated() {
            #expect(child.count > 0)
            checkNode(
                child, lower: index == 0 ? lower : keys[index - 1], upper: index == keys.count ? upper : keys[index],
                depth: depth + 1, &depths)
        }
    }

    private func leaves(_ node: MemoryStoreTree.Node) -> Int {
        node.isLeaf ? 1 : node.children.reduce(0) { $0 + leaves($1) }
    }
}
