import Glibc
import HearthModel
import HearthStorage
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

@testable import HearthServer

/// Which windows of a place a commit asks.
@Suite struct HubPlaceTests {
    private let database: TreeDatabase

    init() throws { database = try TreeDatabase(name: "t", store: MemoryStore(), clock: SystemClock()) }

    private func write(_ path: TreePath, _ node: Node) {
        let ready = Atomic(false)
        database.submit(TreeWrite(changes: [TreeChange(path: path, node: node)], nowMilliseconds: 0)) { _ in
            ready.store(true, ordering: .releasing)
        }
        while !ready.load(ordering: .acquiring) { sched_yield() }
    }

    private func query(from start: Int, to end: Int) -> TreeQuery {
        var query = TreeQuery()
        query.index = .child("age")
        query.start = TreeQuery.Bound(value: .integer(Int64(start)), key: .min, isInclusive: true)
        query.end = TreeQuery.Bound(value: .integer(Int64(end)), key: .max, isInclusive: true)
        return query
    }

    /// However many windows a place has, those are asked in whose range a child stood or stands.
    @Test(arguments: [10, 100, 1000])
    func aCommitAsksOnlyTheWindowsThatItMayConcern(count: Int) throws {
        let place = HubPlace(path: "people")
        let windows = (0..<count).map { place.window(of: query(from: $0 * 10, to: $0 * 10 + 9)) }
        for window in windows { place.becameKnown(window) }
        let late = place.window(of: query(from: -10, to: -1))
        write("people/ann/age", Node(.integer(15)))
        let before = try database.view()
        defer { before.close() }
        write("people/ann/age", Node(.integer(57)))
        let after = try database.view()
        defer { after.close() }
        let change = TreeChange(path: "people/ann/age", node: Node(.integer(57)))
        let children = TouchedChildren("people", [change])
        try children.look(place.indexes, before)
        let asked = try place.windows(for: children, after)
        #expect(
            Set(asked.map { ObjectIdentifier($0) }) == Set([windows[1], windows[5], late].map { ObjectIdentifier($0) }))
        place.becameUnknown(windows[0])
        #expect(try place.windows(for: children, after).count == 4)
        for window in windows { place.forget(window) }
        #expect(try place.windows(for: children, after).count == 1)
    }

    /// A window of very many children takes a change without a look at each.
    @Test func manyPositionsStayInOrder() {
        for seed in 1...20 as ClosedRange<UInt64> {
            var random = Seeded(seed)
            let isReversed = seed % 2 == 0
            var model: [Int] = []
            func position(_ number: Int) -> FilteredWindow.Position {
                FilteredWindow.Position(value: .scalar(.integer(Int64(number / 3))), key: TreeKey("k\(number)"))
            }
            var positions = SortedPositions([], isReversed: isReversed)
            for _ in 0..<4000 {
                let number = Int(random.next(3000))
                if random.next(3) > 0 {
                    positions.insert(position(number))
                    if !model.contains(number) { model.append(number) }
                } else {
                    positions.remove(position(number))
                    model.removeAll { $0 == number }
                }
            }
            let ordered = SortedPositions(
                model.map { position($0) }.sorted { left, right in
                    let order = TreeIndexValue.compare(left.value, right.value)
                    return order != 0 ? order < 0 : left.key < right.key
                }, isReversed: isReversed)
            let wanted = ordered.prefix(.max).map(\.key)
            #expect(positions.count == model.count, "seed \(seed)")
            #expect(positions.prefix(.max).map(\.key) == wanted, "seed \(seed)")
            for (rank, key) in wanted.enumerated() where rank % 7 == 0 {
                #expect(positions[rank].key == key, "seed \(seed)")
                #expect(positions.rank(of: positions[rank]) == rank, "seed \(seed)")
            }
            positions.removeAll(from: wanted.count / 3)
            #expect(positions.prefix(.max).map(\.key) == Array(wanted.prefix(wanted.count / 3)), "seed \(seed)")
            #expect(positions.last?.key == wanted.prefix(wanted.count / 3).last, "seed \(seed)")
        }
    }
}
