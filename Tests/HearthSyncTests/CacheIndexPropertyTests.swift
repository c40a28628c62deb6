import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSync

/// Compares index queries with a scan of all documents, both random.
@Suite("Client-side indexes: scans find what a full scan finds")
struct CacheIndexPropertyTests {
    private static let fields = ["a", "b", "t"]
    private static let collections = ["c", "x/1/c", "x/2/c", "d"]

    // MARK: Random data

    private static let values: [Value] = {
        let long = String(repeating: "l", count: 1600)
        return [
            .null, .boolean(false), .boolean(true), .double(.nan), .double(-.infinity), .integer(-3), .integer(0),
            .double(-0.0), .double(0.5), .integer(1), .double(1), .integer(2), .integer(1 << 53), .integer(1 << 53 + 1),
            .double(0x1p53), .timestamp(.seconds(1)), .timestamp(.seconds(2)), .string(""), .string("a"),
            .string("a\u{0}"),
            .string("b"), .string(long), .string(long + "1"), .string(long + "2"), .bytes([]), .bytes([1]),
            .reference("projects/demo/databases/(default)/documents/c/1"),
            .geoPoint(GeoPoint(latitude: 1, longitude: 2)),
            .array([]), .array([.integer(1)]), .vector([1]), .vector([0, 1]), .map(MapValue()),
            .map(MapValue(["k": .integer(1)])),
            PendingServerTimestamp(localWriteTime: .seconds(9), previousValue: .integer(1)).value,
        ]
    }()

    /// Usually one of few values, so that many are equal.
    private static func value(_ random: inout SeededGenerator) -> Value {
        random.chance(60) ? .integer(Int64(random.below(4))) : random.pick(values)
    }

    private static func document(_ key: String, _ random: inout SeededGenerator) -> ClientDocument {
        var fields = MapValue()
        for name in ["a", "b"] where random.chance(90) { fields.set(name, value(&random)) }
        if random.chance(80) {
            fields.set("t", .array((0..<random.below(4)).map { _ in value(&random) }))
        } else if random.chance(50) {
            fields.set("t", value(&random))
        }
        if random.chance(10) { return ClientDocument(key: ResourcePath(key), kind: .missing, version: .seconds(1)) }
        return ClientDocument(key: ResourcePath(key), kind: .found, version: .seconds(1), fields: fields)
    }

    private static func index(_ random: inout SeededGenerator) -> FieldIndex {
        var names = fields.shuffled(using: &random)
        names.removeLast(random.below(3))
        var segments = names.map { name in
            FieldIndex.Segment(path: FieldPath(name), kind: random.chance(60) ? .ascending : .descending)
        }
        if random.chance(40) {
            segments.insert(.init(path: FieldPath("t"), kind: .contains), at: random.below(segments.count + 1))
        }
        return FieldIndex(collectionGroup: random.chance(90) ? "c" : "d", segments: segments)
    }

    private static func filter(_ random: inout SeededGenerator, depth: Int = 0) -> Filter {
        if depth < 2, random.chance(20) {
            let members = (0..<2).map { _ in filter(&random, depth: depth + 1) }
            return random.chance(60) ? .or(members) : .and(members)
        }
        if random.chance(6) {
            let name = Value.reference("projects/demo/databases/(default)/documents/c/\(random.below(40))")
            return .field(.documentName, random.pick([.equal, .greaterThan, .lessThanOrEqual]), name)
        }
        let list = Value.array((0..<(1 + random.below(3))).map { _ in value(&random) })
        switch random.below(10) {
        case 0: return .field(FieldPath("t"), .arrayContains, value(&random))
        case 1: return .field(FieldPath("t"), .arrayContainsAny, list)
        case 2: return .field(FieldPath(random.pick(fields)), .in, list)
        case 3: return .field(FieldPath(random.pick(fields)), .notIn, list)
        case 4: return .field(FieldPath(random.pick(fields)), .notEqual, value(&random))
        case 5, 6:
            let op: Filter.Operator = random.pick([.lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual])
            return .field(FieldPath(random.pick(fields)), op, value(&random))
        default: return .field(FieldPath(random.pick(fields)), .equal, value(&random))
        }
    }

    private static func query(_ random: inout SeededGenerator) -> ClientQuery {
        var query =
            random.chance(30)
            ? ClientQuery(path: ResourcePath(random.pick(["", "x/1"])), collectionGroup: "c")
            : ClientQuery(path: ResourcePath(random.pick(["c", "c", "x/1/c", "d"])))
        query.filters = (0..<random.below(3)).map { _ in filter(&random) }
        for name in fields.shuffled(using: &random).prefix(random.below(3)) {
            query.orders.append(Query.Order(field: FieldPath(name), descending: random.chance(40)))
        }
        if random.chance(15) { query.orders.append(Query.Order(field: .documentName, descending: random.chance(50))) }
        func bound() -> ClientQuery.Bound? {
            let orders = query.normalizedOrders
            guard random.chance(25) else { return nil }
            let values = orders.prefix(1 + random.below(orders.count)).map { order -> Value in
                order.field.isDocumentName
                    ? .reference("projects/demo/databases/(default)/documents/c/\(random.below(40))") : value(&random)
            }
            return ClientQuery.Bound(values: values, isInclusive: random.chance(50))
        }
        query.start = bound()
        query.end = bound()
        if random.chance(40) {
            query.limit = 1 + random.below(5)
            query.limitType = random.chance(30) ? .last : .first
        }
        return query
    }

    // MARK: The property

    private struct Counts {
        var served = 0
        var full = 0
        var limited = 0
        var refilled = 0
        var found = 0
        var extra = 0
    }

    @Test("Scans are complete, without duplicates, and precise", arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func scans(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let folder = TemporaryFolder()
        let cache = try folder.open()
        let manager = cache.indexManager(for: .unauthenticated)
        var documents: [ResourcePath: ClientDocument] = [:]
        var counts = Counts()
        for round in 0..<6 {
            let changed = (0..<60).map { _ in
                Self.document("\(random.pick(Self.collections))/\(random.below(40))", &random)
            }
            for document in changed { documents[document.key] = document }
            let indexes = (0..<(round == 0 ? 7 : 1)).map { _ in Self.index(&random) }
            try cache.transaction("fill") { () throws(Status) in
                for document in changed { try cache.remoteDocuments.add(document, readTime: .seconds(Int64(round))) }
                try manager.updateEntries(Dictionary(changed.map { ($0.key, $0) }, uniquingKeysWith: { $1 }))
                for index in indexes { try manager.add(index) }
                // The backfill of the new indexes.
                try manager.updateEntries(documents)
            }
            for number in 0..<400 {
                let query = Self.query(&random)
                try cache.transaction("query") { () throws(Status) in
                    try check(query, manager, documents, &counts, "seed \(seed) round \(round) query \(number)")
                }
            }
        }
        #expect(counts.served > 300 && counts.full > 100 && counts.limited > 20, "\(counts)")
        #expect(counts.refilled < counts.limited / 2, "\(counts)")
        #expect(counts.extra * 50 < counts.found, "\(counts)")
        #expect(try cache.database.strings("PRAGMA integrity_check") == ["ok"])
        cache.shutDown()
    }

    /// Whether an index can decide the whole query: no names, no field twice.
    private static func isDecided(_ target: ClientTarget) -> Bool {
        (IndexSubTarget.all(of: target) ?? []).allSatisfy { term in
            !term.hasNameCondition && term.arrays.count < 2
                && Set((term.equalities + term.inequalities).map(\.path)).count
                    == term.equalities.count + term.inequalities.count
        }
    }

    private func check(
        _ query: ClientQuery, _ manager: any IndexManager, _ documents: [ResourcePath: ClientDocument],
        _ counts: inout Counts, _ label: String
    ) throws(Status) {
        let target = query.target
        let coverage = try manager.coverage(of: target)
        guard let found = try manager.documents(matching: target) else {
            #expect(coverage == .none, "\(label)")
            return
        }
        #expect(coverage != .none, "\(label)")
        counts.served += 1
        #expect(Set(found).count == found.count, "\(label): duplicates")
        let matcher = ClientQueryMatcher(query)
        let comparator = DocumentComparator(orders: target.orders)
        var matching = documents.values.filter { matcher.matches($0) }
        matching.sort { comparator.compare($0, $1) < 0 }
        let matched = found.filter { key in documents[key].map { matcher.matches($0) } ?? false }
        if coverage == .full { counts.full += 1 }
        guard coverage == .full, let limit = target.limit else {
            let missing = Set(matching.map(\.key)).subtracting(found)
            #expect(missing.isEmpty, "\(label): \(query.canonicalID) lacks \(missing)")
            if coverage == .full, Self.isDecided(target) {
                counts.found += found.count
                counts.extra += found.count - matched.count
            }
            return
        }
        counts.limited += 1
        // As in the query engine: when documents of the index do not match, it runs again without limit.
        if matched.count != found.count {
            counts.refilled += 1
            return
        }
        let expected = matching.prefix(limit).map(\.key)
        #expect(Set(expected).isSubset(of: found), "\(label): \(query.canonicalID) \(expected) \(found)")
    }
}
