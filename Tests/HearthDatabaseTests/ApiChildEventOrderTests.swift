import HearthTestSupport
import HearthTree
import Testing

@testable import HearthDatabase

/// A list that is made from the events of `childEvents()` alone.
struct ChildEventList: Equatable {
    private(set) var children: [String] = []
    private(set) var values: [String: Node] = [:]

    /// - Throws: a failed expectation, when an event does not fit the list.
    mutating func take(_ event: DatabaseEvent) throws {
        let key = event.snapshot.key
        let index = children.firstIndex(of: key)
        try #require((index == nil) == (event.type == .childAdded), "\(event.type) \(key), in \(children)")
        if let index, event.type != .childChanged { children.remove(at: index) }
        values[key] = event.type == .childRemoved ? nil : event.snapshot.node
        if event.type == .childAdded || event.type == .childMoved {
            let position = try event.previousSiblingKey.map { try #require(children.firstIndex(of: $0)) + 1 } ?? 0
            children.insert(key, at: position)
        }
    }

}

extension ChildEventList {
    init(_ snapshot: DataSnapshot) {
        for case let child as DataSnapshot in snapshot.children {
            children.append(child.key)
            values[child.key] = child.node
        }
    }
}

/// The events of `childEvents()` make the query's list, whatever changes at the same time, for a consumer of any speed.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct ApiChildEventOrderTests {
    private static func queries(_ ref: DatabaseReference) -> [DatabaseQuery] {
        [
            ref, ref.queryOrderedByKey(), ref.queryOrderedByValue(), ref.queryOrdered(byChild: "n"),
            ref.queryOrdered(byChild: "n").queryLimited(toFirst: 3),
            ref.queryOrdered(byChild: "n").queryLimited(toLast: 3), ref.queryLimited(toLast: 2),
            ref.queryOrderedByPriority().queryLimited(toFirst: 4),
            ref.queryOrdered(byChild: "n").queryStarting(atValue: 3).queryLimited(toFirst: 3),
        ]
    }

    private static func value(_ random: inout SeededGenerator) -> Any {
        switch random.below(6) {
        case 0: random.below(10)
        case 1: [".value": random.below(10), ".priority": random.below(4)]
        case 2: ["n": random.below(10), ".priority": random.below(4)] as [String: Any]
        default: ["n": random.below(10), "x": random.below(1000)]
        }
    }

    @Test(arguments: TestRun.fixedSeedsAndNewOne) func eventsMakeTheList(_ seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let bench = try ApiBench()
        let ref = bench.database.reference().child("list")
        plainly { ref.setValue(["a": 1, "b": 2]) }
        let queries = Self.queries(ref)
        var events = queries.map { $0.childEvents().makeAsyncIterator() }
        var lists = queries.map { _ in ChildEventList() }
        for step in 0..<200 {
            if random.below(20) == 0 {
                plainly { ref.removeValue() }
            } else {
                var changes: [AnyHashable: Any] = [:]
                for _ in 0...random.below(4) {
                    let key = "k\(random.below(8))"
                    changes[key] = random.below(5) == 0 ? NSNull() : Self.value(&random)
                }
                plainly { ref.updateChildValues(changes) }
            }
            if random.below(4) != 0, step < 199 { continue }
            await bench.settle()
            for index in queries.indices {
                // Some consumers are slow.
                if random.below(3) == 0, step < 199 { continue }
                while events[index].hasNext { try lists[index].take(try #require(try await events[index].next())) }
                var snapshots = queries[index].snapshots.makeAsyncIterator()
                let expected = ChildEventList(try #require(try await snapshots.next()))
                #expect(lists[index] == expected, "seed \(seed), step \(step), query \(index)")
            }
        }
    }
}
