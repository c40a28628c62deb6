import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments
@testable import HearthEngine

/// Records of a damaged file that would make a sum overflow, or a walk endless, fail with DATA_LOSS. The fuzz target `documentstore` makes
/// many more.
@Suite struct DamagedRecordTests {
    private static let numbers: [Int64] = [.max, .min, -1, Timestamp.microsecondsRange.upperBound + 1]

    private func put(_ store: MemoryStore, _ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws {
        try store.write { transaction throws(Status) in try transaction.put(keyspace, key, value) }
    }

    @Test(arguments: numbers) func theVersionOfTheLastCommit(_ number: Int64) throws {
        let store = MemoryStore()
        try put(store, .meta, Database.versionKey, Database.encode(number))
        let status = statusOf { () throws(Status) in
            _ = try Database(name: testDatabaseName, store: store, clock: StoppedClock())
        }
        #expect(status?.code == .dataLoss)
        #expect(status?.message.contains("'version'") == true)
        #expect(
            try IntegrityCheck.run(store).problems.contains("meta: version is \(number), which is no commit's time"))
    }

    @Test(arguments: numbers) func theBeginningsOfTheHistory(_ number: Int64) throws {
        let store = MemoryStore()
        let database = try Database(name: testDatabaseName, store: store, clock: StoppedClock())
        try database.commit([.set("c/d", map(("a", .integer(1))))])
        try put(store, .meta, Database.earliestKey, Database.encode(number))
        #expect(statusOf { () throws(Status) in _ = try database.versionRetention() }?.code == .dataLoss)
        database.close()
        let reopened = store.reopened()
        try put(reopened, .meta, PointInTimeRecovery.key, Database.encode(number))
        let status = statusOf { () throws(Status) in
            _ = try Database(name: testDatabaseName, store: reopened, clock: StoppedClock())
        }
        #expect(status?.code == .dataLoss)
    }

    static let catalogs: [MapValue] = [
        map(("next", .integer(-1))), map(("next", .integer(Int64(UInt32.max)))), map(("next", .string("1"))),
        map(("definitions", .array([.map(definition(id: -1, dimension: 2))]))),
        map(("definitions", .array([.map(definition(id: .max, dimension: 2))]))),
        map(("definitions", .array([.map(definition(id: 1, dimension: .min))]))),
        map(("definitions", .array([.map(definition(id: 1, dimension: nil))]))),
        map(("overrides", .array([.map(override(offset: .max))]))),
        map(("overrides", .array([.map(override(offset: -1))]))),
    ]

    private static func definition(id: Int64, dimension: Int64?) -> MapValue {
        let fields = dimension.map {
            [("path", Value.string("v")), ("kind", .string("VECTOR")), ("dimension", .integer($0))]
        }
        let field = fields.map { Value.map(MapValue($0.map { MapValue.Field(name: $0.0, value: $0.1) })) }
        return map(
            ("id", .integer(id)), ("collection", .string("c")), ("scope", .string("COLLECTION")),
            ("state", .string("READY")), ("fields", .array(field.map { [$0] } ?? [])))
    }

    private static func override(offset: Int64) -> MapValue {
        map(("collection", .string("c")), ("path", .string("t")), ("ttl", .boolean(true)), ("offset", .integer(offset)))
    }

    @Test(arguments: catalogs.indices) func theCatalogOfIndexes(_ index: Int) throws {
        let store = MemoryStore()
        try put(store, .meta, CatalogStore.key, FieldsCodec.encode(Self.catalogs[index]))
        let status = statusOf { () throws(Status) in
            _ = try Database(name: testDatabaseName, store: store, clock: StoppedClock())
        }
        #expect(status?.code == .dataLoss)
    }

    /// The change before a change is itself.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aHistoryThatGoesRound() throws {
        let store = MemoryStore()
        let clock = StoppedClock()
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        let first = try database.commit([.set("c/d", map(("a", .integer(1))))]).commitTime
        let last = try database.commit([.set("c/d", map(("a", .integer(2))))]).commitTime.microseconds
        let key = Feed.key(last, DocumentKey.encode(resource("c/d").path))
        let snapshot = try store.snapshot()
        var value = try #require(try snapshot.get(.feed, key))
        snapshot.close()
        value.replaceSubrange(..<8, with: Database.encode(last))
        try put(store, .feed, key, value)
        // Before both, so that the whole chain is walked.
        let view = try database.pastView(at: Timestamp(microseconds: first.microseconds - 1))
        #expect(statusOf { () throws(Status) in _ = try view.document(resource("c/d").path) }?.code == .dataLoss)
    }
}
