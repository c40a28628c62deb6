import HearthModel
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthDatabase

/// The child events that wait for a slow consumer.
struct WaitingChildEventTests {
    private static func event(
        _ kind: EngineEvent.Kind, _ key: String, _ value: Int64 = 0, after previous: String? = nil
    ) -> EngineEvent {
        EngineEvent(
            kind: kind, path: TreePath.root.child(TreeKey(key)), node: Node(.integer(value)),
            previousKey: previous.map { TreeKey($0) }, query: TreeQuery())
    }

    /// A consumer's ordered list, made from events.
    private struct Mirror: Equatable {
        var children: [(key: String, value: Int64)] = []

        static func == (left: Mirror, right: Mirror) -> Bool {
            left.children.map(\.key) == right.children.map(\.key)
                && left.children.map(\.value) == right.children.map(\.value)
        }

        private func index(_ key: String?) throws -> Int { try #require(children.firstIndex { $0.key == key }) }

        mutating func take(_ event: EngineEvent) throws {
            let key = try #require(event.path.last?.string)
            guard case .integer(let value)? = event.node.value else { throw Status.internalError("no integer") }
            switch event.kind {
            case .childAdded, .childMoved:
                if event.kind == .childMoved {
                    let index = try index(key)
                    children.remove(at: index)
                }
                let position = try event.previousKey.map { try index($0.string) + 1 } ?? 0
                children.insert((key, value), at: position)
            case .childRemoved:
                let index = try index(key)
                children.remove(at: index)
            case .childChanged:
                let index = try index(key)
                children[index].value = value
            case .value: Issue.record("a value")
            }
        }
    }

    /// A random change of the list, as an event.
    private static func change(_ list: Mirror, _ random: inout SeededGenerator, value: Int64) -> EngineEvent {
        var list = list
        let choice = random.below(10)
        if choice < 2 || list.children.isEmpty {
            let position = random.below(list.children.count + 1)
            let previous = position == 0 ? nil : list.children[position - 1].key
            return event(.childAdded, "k\(value)", value, after: previous)
        }
        let child = list.children.remove(at: random.below(list.children.count))
        switch choice {
        case 2: return event(.childRemoved, child.key, child.value)
        case 3:
            let position = random.below(list.children.count + 1)
            return event(
                .childMoved, child.key, child.value, after: position == 0 ? nil : list.children[position - 1].key)
        default: return event(.childChanged, child.key, value)
        }
    }

    @Test(arguments: TestRun.fixedSeedsAndNewOne) func aSlowConsumerArrivesAtTheSameList(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let waiting = WaitingChildEvents()
        var (source, consumer) = (Mirror(), Mirror())
        var taken = 0
        for value in 0..<5_000 {
            let event = Self.change(source, &random, value: Int64(value))
            try source.take(event)
            #expect(waiting.add(event))
            // Periods of a faster and of a slower consumer.
            while random.below(10) < (value / 500 % 2 == 0 ? 2 : 6), let event = waiting.take() {
                try consumer.take(event)
                taken += 1
            }
        }
        while let event = waiting.take() {
            try consumer.take(event)
            taken += 1
        }
        #expect(consumer == source, "seed \(seed)")
        #expect(taken < 5_000, "successive changes become one")
        #expect(waiting.count == 0)
    }

    @Test func changesOfOneChildNeedTheMemoryOfOne() {
        let waiting = WaitingChildEvents(countMax: 2)
        #expect(waiting.add(Self.event(.childAdded, "a")))
        for value in 1...1_000 { #expect(waiting.add(Self.event(.childChanged, "a", Int64(value)))) }
        #expect(waiting.count == 2)
        #expect(waiting.take()?.kind == .childAdded)
        #expect(waiting.take()?.node == Node(.integer(1_000)))
        // The event that was taken is not changed any more.
        #expect(waiting.add(Self.event(.childChanged, "a", 1_001)))
        #expect(waiting.take()?.node == Node(.integer(1_001)))
    }

    @Test func theLimit() {
        let waiting = WaitingChildEvents(countMax: 2)
        for key in ["a", "b"] { #expect(waiting.add(Self.event(.childAdded, key))) }
        #expect(!waiting.add(Self.event(.childAdded, "c")))
        #expect(waiting.count == 0 && waiting.take() == nil)
        #expect(!waiting.add(Self.event(.childAdded, "d")), "it stays full")
        waiting.clear()
        #expect(!waiting.add(Self.event(.childAdded, "e")))
    }
}
