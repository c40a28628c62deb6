import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSync

/// A local store on the disk's cache with indexes, compared with one in memory without: the same operations produce the
/// same answers.
@Suite("Local stores on both caches answer alike")
struct CacheLocalStoreTests {
    private struct Stores {
        var all: [LocalStore]
        var random: SeededGenerator
        var version: Int64 = 1

        mutating func value() -> Value {
            random.chance(70)
                ? .integer(Int64(random.below(5))) : random.pick([.null, .double(1), .string("s"), .boolean(true)])
        }

        mutating func fields() -> MapValue {
            var fields = MapValue()
            for name in ["a", "b"] where random.chance(85) { fields.set(name, value()) }
            fields.set("t", .array((0..<random.below(3)).map { _ in value() }))
            return fields
        }

        mutating func key() -> ResourcePath { ResourcePath("\(random.pick(["c", "c", "x/1/c"]))/\(random.below(25))") }

        mutating func mutation() -> Mutation {
            let key = key()
            switch random.below(5) {
            case 0: return Mutation(key: key, kind: .delete)
            case 1:
                let add = FieldTransform(path: FieldPath("a"), operation: .increment(.integer(1)))
                return Mutation(key: key, kind: .patch(MapValue(), mask: []), transforms: [add])
            case 2:
                let patch = Mutation.Kind.patch(MapValue(["b": value()]), mask: [FieldPath("b"), FieldPath("a")])
                return Mutation(key: key, kind: patch, precondition: .exists(true))
            default: return Mutation(key: key, kind: .set(fields()))
            }
        }

        mutating func remoteEvent() throws {
            version += 1
            var event = RemoteEvent(snapshotVersion: .seconds(version))
            for _ in 0..<(1 + random.below(4)) {
                let key = key()
                event.documentUpdates[key] =
                    random.chance(80)
                    ? ClientDocument(key: key, kind: .found, version: .seconds(version), fields: fields())
                    : ClientDocument(key: key, kind: .missing, version: .seconds(version))
            }
            for store in all { _ = try store.apply(event) }
        }

        /// The server's answer to the first batch; sometimes the documents arrive on the watch stream before it.
        mutating func acknowledge() throws {
            guard let batch = try all[0].nextBatch(after: MutationBatch.unknownID) else { return }
            version += 1
            let results = batch.mutations.map { mutation in
                MutationResult(
                    version: .seconds(version), transformResults: mutation.transforms.map { _ in value() })
            }
            if random.chance(40) {
                var event = RemoteEvent(snapshotVersion: .seconds(version))
                for key in batch.keys {
                    event.documentUpdates[key] = ClientDocument(
                        key: key, kind: .found, version: .seconds(version), fields: fields())
                }
                for store in all { _ = try store.apply(event) }
                if random.chance(50) { for store in all { try store.backfillIndexes() } }
            }
            for store in all {
                _ = try store.acknowledge(
                    BatchResult(
                        batch: batch, commitVersion: .seconds(version), results: results, streamToken: [1]))
            }
        }

        mutating func reject() throws {
            guard let batch = try all[0].nextBatch(after: MutationBatch.unknownID) else { return }
            for store in all { _ = try store.reject(batch.id) }
        }

        mutating func query() -> ClientQuery {
            var query =
                random.chance(30)
                ? ClientQuery(path: ResourcePath(), collectionGroup: "c") : ClientQuery(path: ResourcePath("c"))
            switch random.below(5) {
            case 0: query.filters = [filter("a", .equal, value())]
            case 1: query.filters = [filter("a", .greaterThan, value())]
            case 2: query.filters = [filter("t", .arrayContains, value())]
            case 3: query.filters = [.or([filter("a", .equal, value()), filter("b", .equal, value())])]
            default: query.orders = [Query.Order(field: FieldPath("a"), descending: random.chance(50))]
            }
            if random.chance(50) {
                query.limit = 1 + random.below(4)
                if !query.orders.isEmpty { query.limitType = random.pick([.first, .last]) }
            }
            return query
        }

        /// The result in a view's form.
        func answer(_ store: LocalStore, _ query: ClientQuery) throws -> [ClientDocument] {
            let comparator = query.comparator
            let found = try store.execute(query, usesPreviousResults: true).documents
                .filter { query.matches($0) }.sorted { comparator.compare($0, $1) < 0 }
            guard let limit = query.limit else { return found }
            return query.limitType == .first ? Array(found.prefix(limit)) : Array(found.suffix(limit))
        }
    }

    private static func difference(_ found: [ClientDocument], _ expected: [ClientDocument]) -> String {
        for (left, right) in zip(found, expected) where left != right { return "\(left)\n instead of \(right)" }
        return "\(found.map(\.key)) instead of \(expected.map(\.key))"
    }

    @Test("Writes, answers, snapshots, backfills in any order", arguments: TestRun.numbers(2))
    func random(_ seed: UInt64) throws {
        let folder = TemporaryFolder()
        let cache = try folder.open()
        let indexed = LocalStore(cache, user: ClientUser(uid: "u"))
        let plain = LocalStore(
            MemoryPersistence(.lru(CollectionParameters(thresholdBytes: -1))), user: ClientUser(uid: "u"))
        try indexed.configure([
            FieldIndex("c", ("a", .ascending)), FieldIndex("c", ("a", .descending)), FieldIndex("c", ("b", .ascending)),
            FieldIndex("c", ("t", .contains)),
        ])
        var stores = Stores(all: [plain, indexed], random: SeededGenerator(seed: seed))
        var served = 0
        for step in 0..<600 {
            switch stores.random.below(10) {
            case 0...1: try stores.remoteEvent()
            case 2...4:
                let mutations = (0..<(1 + stores.random.below(2))).map { _ in stores.mutation() }
                for store in stores.all { _ = try store.write(mutations) }
            case 5...6: try stores.acknowledge()
            case 7: try stores.reject()
            default: try indexed.backfillIndexes()
            }
            for _ in 0..<3 {
                let query = stores.query()
                let expected = try stores.answer(plain, query)
                let found = try stores.answer(indexed, query)
                #expect(
                    found.map(\.key) == expected.map(\.key) && zip(found, expected).allSatisfy { $0 == $1 },
                    "seed \(seed) step \(step): \(query.canonicalID) \(Self.difference(found, expected))")
                let coverage = try cache.transaction("coverage") { () throws(Status) in
                    try cache.indexManager(for: ClientUser(uid: "u")).coverage(of: query.target)
                }
                if coverage != .none { served += 1 }
            }
        }
        #expect(served > 1000)
        cache.shutDown()
    }
}
