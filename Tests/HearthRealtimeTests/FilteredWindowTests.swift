import HearthTestSupport
import HearthTree
import Testing

@testable import HearthRealtimeServer

@Suite struct FilteredWindowTests {
    private func position(_ query: TreeQuery, _ key: TreeKey, _ node: Node) -> FilteredWindow.Position {
        FilteredWindow.Position(value: query.indexValue(of: node), key: key)
    }

    /// Reads as the hub does, with a reserve of a few children.
    private func read(_ query: TreeQuery, _ node: Node, reserve: Int?) -> FilteredWindow {
        var wider = query
        wider.limit = query.limit.flatMap { limit in reserve.map { limit + $0 } }
        let children = wider.orderedChildren(of: node)
        return FilteredWindow(
            query, positions: children.map { position(query, $0.key, $0.node) },
            isComplete: wider.limit.map { children.count < $0 } ?? true, keepsAll: reserve == nil)
    }

    @Test func followsRandomChanges() {
        var refills = 0
        for seed in 1...400 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            let query = random.query()
            let reserve = random.below(3) == 0 ? nil : random.below(3)
            let names = (0..<30).map { TreeKey("k\($0)") }
            var node = Node(children: names.prefix(random.below(30)).map { ($0, random.node(depth: 2)) })
            var window = read(query, node, reserve: reserve)
            for step in 0..<40 {
                let before = query.orderedChildren(of: node).map(\.key)
                #expect(window.keys.sorted() == before.sorted(), "seed \(seed), step \(step)")
                var touched: [FilteredWindow.Touched] = []
                for _ in 0...random.below(3) {
                    let key = names[random.below(names.count)]
                    if touched.contains(where: { $0.key == key }) { continue }
                    let child = random.below(3) == 0 ? Node.empty : random.node(depth: 2)
                    func value(_ child: Node) -> TreeIndexValue? {
                        !child.isEmpty && query.contains(key, child) ? query.indexValue(of: child) : nil
                    }
                    touched.append(
                        FilteredWindow.Touched(key: key, before: value(node.child(key)), after: value(child)))
                    node = node.setting(key, to: child)
                }
                let difference: FilteredWindow.Difference
                switch window.apply(touched) {
                case .changed(let found): difference = found
                case .unsound(let keysBefore):
                    refills += 1
                    #expect(keysBefore.sorted() == before.sorted(), "seed \(seed), step \(step)")
                    window = read(query, node, reserve: reserve)
                    difference = window.difference(from: keysBefore, touched: Set(touched.map(\.key)))
                }
                let after = query.orderedChildren(of: node).map(\.key)
                let (old, new) = (Set(before), Set(after))
                #expect(Set(difference.entering) == new.subtracting(old), "seed \(seed), step \(step)")
                #expect(Set(difference.leaving) == old.subtracting(new), "seed \(seed), step \(step)")
                #expect(
                    Set(difference.staying) == new.intersection(old).intersection(touched.map(\.key)),
                    "seed \(seed), step \(step)")
                #expect(
                    difference.entering.count + difference.leaving.count + difference.staying.count
                        == Set(difference.entering + difference.leaving + difference.staying).count)
            }
        }
        #expect(refills > 100, "the tests have to come to the edge of what is known")
    }
}
