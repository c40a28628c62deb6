import HearthModel
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// The queries that a commit concerns are found, and few others.
@Suite struct QueryIndexTests {
    private final class Watcher {
        let live: LiveQuery
        init(_ live: LiveQuery) { self.live = live }
    }

    private final class Sets: Sendable {
        let all = Mutex<[ChangeSet]>([])
    }

    /// Every query that matches before or after a change is among the candidates, while queries are added and removed.
    @Test func nothingIsMissed() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        var matches = 0
        var visited = 0
        var present = 0
        for _ in 0..<(30 * TestRun.effort) {
            var twin = try RandomDatabase(SeededGenerator(seed: random.next()))
            defer { twin.database.close() }
            let sets = Sets()
            twin.database.observe { set in sets.all.withLock { $0.append(set) } }
            let watchers = (0..<80).compactMap { _ in
                (try? NormalizedQuery(twin.randomQuery())).map { Watcher(LiveQuery($0)) }
            }
            var index = QueryIndex<Watcher>()
            var inserted: [ObjectIdentifier: Watcher] = [:]
            for _ in 0..<30 {
                for watcher in watchers where random.chance(30) {
                    if inserted.removeValue(forKey: ObjectIdentifier(watcher)) != nil {
                        index.remove(watcher)
                    } else {
                        inserted[ObjectIdentifier(watcher)] = watcher
                        index.insert(watcher, for: watcher.live)
                    }
                }
                try twin.commit(documents: 1 + twin.random.below(4))
                let changes = sets.all.withLock { all in
                    defer { all = [] }
                    return all.flatMap(\.changes)
                }
                for change in changes {
                    let found = try index.candidates(for: change)
                    #expect(Set(found.map { ObjectIdentifier($0) }).count == found.count)
                    #expect(try index.hasCandidates(for: change) == !found.isEmpty)
                    #expect(found.allSatisfy { inserted[ObjectIdentifier($0)] != nil })
                    for watcher in inserted.values {
                        let isConcerned =
                            try watcher.live.matches(change.before, key: change.key)
                            || watcher.live.matches(change.after, key: change.key)
                        if isConcerned {
                            matches += 1
                            #expect(found.contains { $0 === watcher }, "\(watcher.live.query.query)")
                        }
                    }
                    visited += found.count
                    present += inserted.count
                }
            }
            for watcher in inserted.values { index.remove(watcher) }
            #expect(index.isEmpty)
        }
        #expect(matches > 1000)
        // Operands are taken from few values, so many queries match; still the index must exclude many.
        #expect(visited * 10 < present * 9)
    }

    private func live(_ filter: Filter) throws -> LiveQuery {
        let parent = ResourceName(database: testDatabaseName, path: ResourcePath([]))
        var query = Query(parent: parent, scope: .collection("c"))
        query.filter = filter
        return LiveQuery(try NormalizedQuery(query))
    }

    private func change(_ value: Value, _ others: (String, Value)...) -> Change {
        var fields = MapValue()
        fields.set("n", value)
        for (name, value) in others { fields.set(name, value) }
        let document = StoredDocument(createVersion: 1, updateVersion: 1, fields: FieldsCodec.encode(fields))
        return Change(key: DocumentKey.encode(ResourcePath(["c", "a"])), before: nil, after: document)
    }

    @Test func oneOfManyQueriesIsFound() throws {
        let filters: [(Int) -> Filter] = [
            { .field(FieldPath("n"), .equal, .integer(Int64($0))) },
            { .field(FieldPath("n"), .in, .array([.integer(Int64($0)), .string("x\($0)")])) },
            {
                .and([
                    .field(FieldPath("n"), .greaterThanOrEqual, .integer(Int64($0))),
                    .field(FieldPath("n"), .lessThan, .integer(Int64($0 + 1))),
                ])
            },
            {
                .and([
                    .field(FieldPath("n"), .equal, .integer(Int64($0))),
                    .field(FieldPath("m"), .greaterThan, .integer(1)),
                ])
            },
        ]
        for filter in filters {
            var index = QueryIndex<Watcher>()
            let watchers = try (0..<1000).map { Watcher(try live(filter($0))) }
            for watcher in watchers { index.insert(watcher, for: watcher.live) }
            let found = try index.candidates(for: change(.integer(500)))
            #expect(found.count == 1 && found.first === watchers[500])
            #expect(try index.candidates(for: change(.integer(5000))).isEmpty)
            index.remove(watchers[500])
            #expect(try index.candidates(for: change(.integer(500))).isEmpty)
        }
        var index = QueryIndex<Watcher>()
        let watchers = try (0..<1000).map {
            Watcher(try live(.field(FieldPath("n"), .arrayContains, .integer(Int64($0)))))
        }
        for watcher in watchers { index.insert(watcher, for: watcher.live) }
        let found = try index.candidates(for: change(.array([.integer(7), .integer(9), .integer(7)])))
        #expect(
            Set(found.map { ObjectIdentifier($0) }) == [ObjectIdentifier(watchers[7]), ObjectIdentifier(watchers[9])])
    }

    private func page(_ order: String, from: Int, to: Int, descending: Bool = false) throws -> LiveQuery {
        let parent = ResourceName(database: testDatabaseName, path: ResourcePath([]))
        var query = Query(parent: parent, scope: .collection("c"))
        query.orders = [Query.Order(field: FieldPath(order), descending: descending)]
        let (first, last) = descending ? (to, from) : (from, to)
        query.start = Query.Cursor(values: [.integer(Int64(first))], before: true)
        query.end = Query.Cursor(values: [.integer(Int64(last))], before: true)
        query.limit = 5
        return LiveQuery(try NormalizedQuery(query))
    }

    /// Pages of one order are distinguished by their cursors.
    @Test func oneOfManyPagesIsFound() throws {
        for descending in [false, true] {
            for count in [10, 100, 1000] {
                var index = QueryIndex<Watcher>()
                for number in 0..<count {
                    let page = try page("n", from: 10 * number, to: 10 * number + 9, descending: descending)
                    let watcher = Watcher(page)
                    index.insert(watcher, for: watcher.live)
                }
                #expect(try index.candidates(for: change(.integer(57))).count == 1)
                #expect(try !index.hasCandidates(for: change(.integer(-3))))
            }
        }
    }

    /// Queries that name n different fields cost a document its own fields.
    @Test func fieldsThatADocumentLacksCostNothing() throws {
        for count in [10, 100, 1000] {
            var index = QueryIndex<Watcher>()
            let watchers = try (0..<count).map { number in
                Watcher(try live(.field(FieldPath(segments: ["m", "f\(number)"]), .equal, .integer(1))))
            }
            for watcher in watchers { index.insert(watcher, for: watcher.live) }
            var inner = MapValue()
            inner.set("f7", .integer(1))
            let found = try index.candidates(for: change(.integer(1), ("m", .map(inner))))
            #expect(found.count == 1 && found.first === watchers[7])
            #expect(try index.candidates(for: change(.integer(1))).isEmpty)
        }
    }

    /// The nodes that a look-up visits grow with the logarithm of the ranges.
    @Test func intervalsAreFoundWithoutVisitingOthers() {
        final class Item {}
        var visited: [Int] = []
        for count in [1000, 10_000] {
            var index = IntervalIndex<Item>()
            for number in 0..<count {
                let lower = withUnsafeBytes(of: UInt32(number * 10).bigEndian) { Array($0) }
                let upper = withUnsafeBytes(of: UInt32(number * 10 + 5).bigEndian) { Array($0) }
                index.insert(Item(), KeyRange(lower: lower, upper: upper))
            }
            var most = 0
            for number in stride(from: 0, to: count, by: 37) {
                let key = withUnsafeBytes(of: UInt32(number * 10 + 2).bigEndian) { Array($0) }
                var found = 0
                most = max(most, index.forEach(containing: key) { _ in found += 1 })
                #expect(found == 1)
            }
            visited.append(most)
        }
        #expect(visited[1] < 2 * visited[0] && visited[1] < 250, "\(visited)")
    }

    /// Against a walk over every range.
    @Test func intervals() {
        final class Item {
            let range: KeyRange
            init(_ range: KeyRange) { self.range = range }
        }
        var random = SeededGenerator(seed: TestRun.seed())
        for _ in 0..<50 {
            var index = IntervalIndex<Item>()
            var present: [Item] = []
            var absent: [Item] = []
            for step in 0..<400 {
                if !present.isEmpty, random.chance(40) {
                    let item = present.remove(at: random.below(present.count))
                    index.remove(item)
                    absent.append(item)
                } else if !absent.isEmpty, random.chance(20) {
                    let item = absent.remove(at: random.below(absent.count))
                    index.insert(item, item.range)
                    present.append(item)
                } else {
                    let lower = UInt8(random.below(200))
                    let upper = random.chance(10) ? nil : [lower + UInt8(random.below(50))]
                    let item = Item(KeyRange(lower: [lower], upper: upper))
                    index.insert(item, item.range)
                    present.append(item)
                }
                #expect(index.count == present.count)
                guard step % 7 == 0 else { continue }
                let key = [UInt8(random.below(256))]
                var found: [ObjectIdentifier] = []
                index.forEach(containing: key) { found.append(ObjectIdentifier($0)) }
                #expect(found.count == Set(found).count)
                #expect(Set(found) == Set(present.filter { $0.range.contains(key) }.map { ObjectIdentifier($0) }))
            }
        }
    }
}
