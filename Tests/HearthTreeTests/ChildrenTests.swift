import HearthTestSupport
import HearthTree
import Testing

@testable import HearthTree

@Suite struct ChildrenTests {
    /// A node that grows and shrinks agrees with a dictionary at each step.
    @Test func childrenAreThoseOfADictionary() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        for span in [5, 100, 300, 3000] {
            var model: [TreeKey: Int] = [:]
            var node = Node.empty
            var earlier: [(node: Node, model: [TreeKey: Int])] = []
            for step in 0..<2000 {
                // Grows in the first half, shrinks to nothing in the second.
                let key = TreeKey("k\(chance.below(span))")
                let isRemoval = chance.below(2000) < step
                node = node.setting(key, to: isRemoval ? .empty : Node(.integer(Int64(step))))
                model[key] = isRemoval ? nil : step
                if step % 400 == 250 { earlier.append((node, model)) }
                let probe = TreeKey("k\(chance.below(span))")
                #expect(node.child(probe).value?.number == model[probe].map(Double.init), "seed \(seed)")
            }
            for (key, _) in model { node = node.setting(key, to: .empty) }
            #expect(node.isEmpty)
            // The earlier value is unchanged.
            for (node, model) in earlier { try expect(node, model, "seed \(seed), \(span)") }
        }
    }

    private func expect(_ node: Node, _ model: [TreeKey: Int], _ note: String) throws {
        let keys = model.keys.sorted()
        let children = node.children
        try #require(children.map(\.key) == keys, "\(note)")
        #expect(children.count == keys.count)
        #expect(children.map(\.node) == keys.map { Node(.integer(Int64(model[$0]!))) }, "\(note)")
        for (position, key) in keys.enumerated() {
            #expect(children[position].key == key, "\(note)")
            #expect(children.position(of: key) == position, "\(note)")
            #expect(
                children.position(of: TreeKey(key.string + "x"))
                    == (keys.firstIndex { $0 > TreeKey(key.string + "x") } ?? keys.count))
        }
        #expect(children == Node(children: keys.shuffled().map { ($0, node.child($0)) }).children, "\(note)")
    }

    /// JSON of any order and length is read correctly, whether it is put into chunks during the read or not.
    @Test func jsonIsReadIntoItsMembers() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        for count in [0, 1, 95, 96, 97, 128, 129, 192, 500] {
            for isShuffled in [false, true] {
                var keys = (0..<count).map { $0 * 2 }
                if isShuffled {
                    for _ in 0..<3 where count > 1 { keys.swapAt(chance.below(count), chance.below(count)) }
                    if count > 0 { keys.append(keys[chance.below(count)]) }
                }
                let members = keys.enumerated().map { ($1, chance.below(5) == 0 ? nil : $0) }
                let string = members.map { "\"\($0)\":\($1.map(String.init) ?? "null")" }.joined(separator: ",")
                let node = try TreeJSON.node(Array("{\(string)}".utf8))
                var model: [TreeKey: Int] = [:]
                for (key, value) in members { model[TreeKey(key)] = value }
                let expected = Node(children: model.map { ($0.key, Node(.integer(Int64($0.value)))) })
                #expect(node == expected, "seed \(seed), \(string)")
                #expect(node.children.map(\.key) == model.keys.sorted(), "seed \(seed), \(string)")
            }
        }
    }

    @Test func aLargeNodeIsReduced() throws {
        let all = (0..<1000).map { (TreeKey($0), Node(.integer(Int64($0)))) }
        let node = Node(children: all.shuffled())
        #expect(node.children.map(\.key) == all.map(\.0))
        guard case .many(let chunks, let starts)? = node.children.storage?.content else {
            Issue.record("a thousand children are one array")
            return
        }
        #expect(
            chunks.count == starts.count && chunks.allSatisfy { (1...ChildStorage.chunkCountMax).contains($0.count) })
        #expect(node.setting(TreeKey(5), to: node.child(TreeKey(5))) == node)
        var rest = node
        for position in 10..<1000 { rest = rest.setting(TreeKey(position), to: .empty) }
        guard case .one? = rest.children.storage?.content else {
            Issue.record("ten children are not one array")
            return
        }
    }

    /// The stored hash is that of the content, whatever changes around it.
    @Test func cachedHashesAreThoseOfTheContent() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        var node = Node.empty
        for _ in 0..<100 {
            node = node.applying(chance.change(depth: 3))
            _ = node.hash
            node = node.setting(
                TreeKey("list"),
                to: node.child("list").setting(TreeKey("k\(chance.below(300))"), to: Node(chance.scalar())))
            #expect(node.hash == node.copied.hash, "seed \(seed): \(string(of: node))")
            #expect(node.hash == node.hash)
        }
        let list = Node(children: (0..<20).map { (TreeKey($0), Node(true)) })
        #expect(list.children.storage?.cachedHash == nil)
        node = node.setting(TreeKey("list"), to: list)
        #expect(node.hash == node.copied.hash)
        #expect(list.children.storage?.cachedHash != nil)
        #expect(list.with(priority: 1).hash == list.copied.with(priority: 1).hash)
        #expect(list.with(priority: 1).hash != list.hash)
    }
}

extension Node {
    /// An equal node that shares nothing.
    fileprivate var copied: Node {
        if let value { return Node(value, priority: priority) }
        return Node(children: children.map { ($0.key, $0.node.copied) }, priority: priority)
    }
}
