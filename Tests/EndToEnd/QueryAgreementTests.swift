import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

/// What the client computes from its cache is what the server answers for the same query: documents in their order, and
/// counts, sums and averages, once and live.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct QueryAgreementTests {
    private static let runsDefault = 3

    /// Every operator with operands of every kind, alone and in an OR.
    @Test(arguments: [false, true]) func everyOperatorWithEveryKindOfOperand(isPersistent: Bool) async throws {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: isPersistent)
        let c = device.db.collection("c")
        let batch = device.db.batch()
        for (index, value) in RandomQueries.values.enumerated() {
            batch.setData(["a": value, "b": index], forDocument: c.document("d\(index)"))
        }
        batch.setData(["b": -1], forDocument: c.document("without"))
        try await batch.commit()
        _ = try await c.getDocuments(source: .server)
        for value in RandomQueries.values {
            for condition in RandomQueries.conditions(on: "a", value) {
                for query in [
                    c.whereFilter(condition.filter),
                    c.whereFilter(.orFilter([condition.filter, .whereField("b", isEqualTo: -1)])),
                    c.whereFilter(.andFilter([condition.filter, .whereField("b", isLessThan: 1000)])),
                ] {
                    _ = try await Self.compare(query, condition.string)
                }
            }
        }
        await device.end()
    }

    @Test(arguments: TestRun.seeds(runsDefault)) func randomQueriesAndAggregations(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let backend = try Backend()
        let device = try Device(backend, isPersistent: random.chance(50))
        try await RandomQueries.fill(device.db, &random)
        _ = try await device.db.collectionGroup("c").getDocuments(source: .server)
        var answered = 0
        var aggregated = 0
        for number in 0..<60 {
            let wanted = try await RandomQueries.query(device.db, &random)
            let what = "seed \(seed), query \(number): \(wanted.string)"
            if try await Self.compare(wanted.query, what) { answered += 1 }
            let names = RandomQueries.aggregatedFields(&random)
            if try await Self.compare(wanted, names, "\(what); sums of \(names)") { aggregated += 1 }
        }
        #expect(answered > 20 && aggregated > 20, "seed \(seed): the server refused most queries")
        await device.end()
    }

    /// - Returns: whether the server answers the query.
    private static func compare(_ query: Query, _ what: String) async throws -> Bool {
        let there: [String]
        do {
            there = try await query.getDocuments(source: .server).documents.map(\.reference.path)
        } catch let error as NSError {
            #expect(error.code == FirestoreErrorCode.invalidArgument.rawValue, "\(what): \(error)")
            return false
        }
        let here = try await query.getDocuments(source: .cache).documents.map(\.reference.path)
        #expect(here == there, "\(what)")
        return true
    }

    /// - Returns: whether the server answers the aggregation.
    private static func compare(
        _ wanted: RandomQueries.Wanted, _ names: [String], _ what: String
    ) async throws -> Bool {
        let fields = [AggregateField.count()] + names.flatMap { [AggregateField.sum($0), .average($0)] }
        let aggregate = wanted.query.aggregate(fields)
        @Sendable func outcome(_ snapshot: AggregateQuerySnapshot) -> [String] {
            fields.map { field in
                let number = snapshot.get(field) as? NSNumber
                return number.map { "\(String(cString: $0.objCType)) \($0)" } ?? "null"
            }
        }
        func outcome(_ source: AggregateSource) async -> Result<[String], NSError> {
            do { return .success(outcome(try await aggregate.getAggregation(source: source))) } catch {
                return .failure(error as NSError)
            }
        }
        let there = await outcome(.server)
        let here = await outcome(.cache)
        let events = Recorder<Result<[String], NSError>>()
        let registration = aggregate.addSnapshotListener(includeMetadataChanges: true) { snapshot, error in
            if let error { return events.append(.failure(error as NSError)) }
            if let snapshot, !snapshot.metadata.isFromCache { events.append(.success(outcome(snapshot))) }
        }
        let live = try await events.first(1)[0]
        registration.remove()
        let refused = FirestoreErrorCode.invalidArgument.rawValue
        switch (there, here, live) {
        case (.success(let there), .success(let here), .success(let live)):
            #expect(here == there && live == there, "\(what)")
            return true
        case (.failure(let there), .failure(let here), .failure(let live)):
            let codes: Set<Int> = [there.code, here.code, live.code]
            #expect(codes == [refused], "\(what): \(there) \(here) \(live)")
        case (.failure(let there), .success(let here), .success(let live)):
            // The server refuses an order in which the name comes before an aggregated field. Without a limit the result
            // does not depend on this order.
            #expect(there.code == refused && !wanted.isLimited, "\(what): \(there)")
            let found = try await wanted.query.getDocuments(source: .server).documents
            let count = found.count { document in names.allSatisfy { document.get($0) != nil } }
            #expect(here.first?.hasSuffix(" \(count)") ?? false, "\(what)")
            #expect(live == here, "\(what)")
        case (.failure(let there), .success, .failure(let live)):
            // The server refuses the query itself.
            #expect(there.code == refused && live.code == refused, "\(what): \(there) \(live)")
        default: Issue.record("\(what): \(there) \(here) \(live)")
        }
        return false
    }
}

/// Random documents and queries over them.
enum RandomQueries {
    /// One condition on a field.
    struct Condition {
        var filter: Filter
        /// `!=` and `not-in`, which cannot be combined with all others.
        var isNegative = false
        var string: String
    }

    struct Wanted {
        var query: Query
        var isLimited = false
        var string: String
    }

    static var values: [Any] {
        [
            NSNull(), Double.nan, false, true, -1, 0, -0.0, 1, 1.0, 1.5, 2, Int64.max, Double.infinity, "", "s", "t",
            Timestamp(seconds: 1, nanoseconds: 0), Data([1]), GeoPoint(latitude: 1, longitude: 2),
            FieldValue.vector([1.0, 2.0]), [Any](), [1], [1.0, NSNull()], [Double.nan], [NSNull()], ["s", 1] as [Any],
            [String: Any](), ["x": 1], ["x": NSNull()], ["x": Double.nan], ["x": ["y": 1]],
        ]
    }

    static func conditions(on field: String, _ value: Any) -> [Condition] {
        func condition(_ filter: Filter, _ op: String, isNegative: Bool = false) -> Condition {
            Condition(filter: filter, isNegative: isNegative, string: "\(field) \(op) \(value)")
        }
        return [
            condition(.whereField(field, isEqualTo: value), "=="),
            condition(.whereField(field, isNotEqualTo: value), "!=", isNegative: true),
            condition(.whereField(field, isLessThan: value), "<"),
            condition(.whereField(field, isLessThanOrEqualTo: value), "<="),
            condition(.whereField(field, isGreaterThan: value), ">"),
            condition(.whereField(field, isGreaterOrEqualTo: value), ">="),
            condition(.whereField(field, arrayContains: value), "contains"),
            condition(.whereField(field, arrayContainsAny: [value, "t"]), "contains any of t,"),
            condition(.whereField(field, in: [value, "t"]), "in t,"),
            condition(.whereField(field, notIn: [value, "t"]), "not in t,", isNegative: true),
        ]
    }

    static func fill(_ db: Firestore, _ random: inout SeededGenerator) async throws {
        let batch = db.batch()
        for collection in ["c", "p/x/c"] {
            for number in 0..<20 {
                var data: [String: Any] = [:]
                if random.chance(85) { data["a"] = random.pick(values) }
                if random.chance(90) { data["b"] = random.below(4) }
                if random.chance(70) { data["m"] = random.pick([1, 2, 2.5, -3, "no number", NSNull()] as [Any]) }
                if random.chance(80) { data["n"] = ["x": random.below(3)] }
                batch.setData(data, forDocument: db.document("\(collection)/d\(number)"))
            }
        }
        try await batch.commit()
    }

    static func aggregatedFields(_ random: inout SeededGenerator) -> [String] {
        Array(["m", "b", "n.x", "a"].filter { _ in random.chance(35) }.prefix(2))
    }

    static func query(_ db: Firestore, _ random: inout SeededGenerator) async throws -> Wanted {
        let isGroup = random.chance(40)
        let path = random.chance(70) ? "c" : "p/x/c"
        var wanted = Wanted(
            query: isGroup ? db.collectionGroup("c") : db.collection(path), string: isGroup ? "group c" : path)
        if let condition = condition(db, &random) {
            wanted.query = wanted.query.whereFilter(condition.filter)
            wanted.string += " where \(condition.string)"
        }
        var orders: [String] = []
        for field in ["b", "a", "m", "n.x", ""] where random.chance(field.isEmpty ? 10 : 25) {
            orders.append(field)
            let isDescending = random.chance(40)
            wanted.query =
                field.isEmpty
                ? wanted.query.order(by: FieldPath.documentID(), descending: isDescending)
                : wanted.query.order(by: field, descending: isDescending)
            wanted.string += " by \(field.isEmpty ? "name" : field)\(isDescending ? " down" : "")"
        }
        try await addCursors(&wanted, orders, isGroup: isGroup, &random)
        let limit = 1 + random.below(8)
        switch random.below(10) {
        case 0..<3: wanted.query = wanted.query.limit(to: limit)
        case 3..<5 where !orders.isEmpty: wanted.query = wanted.query.limit(toLast: limit)
        default: return wanted
        }
        wanted.isLimited = true
        wanted.string += " limit \(limit)"
        return wanted
    }

    private static func addCursors(
        _ wanted: inout Wanted, _ orders: [String], isGroup: Bool, _ random: inout SeededGenerator
    ) async throws {
        let (hasStart, hasEnd, isInclusive) = (random.chance(70), random.chance(40), random.chance(50))
        switch random.below(10) {
        case 0..<3:
            // A result has all fields of the order.
            let found = (try? await wanted.query.getDocuments(source: .server).documents) ?? []
            guard !found.isEmpty else { return }
            let (first, last) = (random.pick(found), random.pick(found))
            if hasStart {
                wanted.query =
                    isInclusive ? wanted.query.start(atDocument: first) : wanted.query.start(afterDocument: first)
                wanted.string += " from \(first.reference.path) \(isInclusive)"
            }
            if hasEnd {
                wanted.query = isInclusive ? wanted.query.end(beforeDocument: last) : wanted.query.end(atDocument: last)
                wanted.string += " to \(last.reference.path) \(!isInclusive)"
            }
        case 3..<5 where !orders.isEmpty:
            let (start, end) = (position(orders, isGroup, &random), position(orders, isGroup, &random))
            if hasStart {
                wanted.query = isInclusive ? wanted.query.start(at: start) : wanted.query.start(after: start)
                wanted.string += " from \(start) \(isInclusive)"
            }
            if hasEnd {
                wanted.query = isInclusive ? wanted.query.end(before: end) : wanted.query.end(at: end)
                wanted.string += " to \(end) \(!isInclusive)"
            }
        default: return
        }
    }

    private static func position(_ orders: [String], _ isGroup: Bool, _ random: inout SeededGenerator) -> [Any] {
        var result: [Any] = []
        for field in orders.prefix(1 + random.below(orders.count)) {
            switch field {
            case "b", "n.x": result.append(random.below(4))
            case "": result.append("\(isGroup ? "c/" : "")d\(random.below(20))")
            default: result.append(random.pick(values))
            }
        }
        return result
    }

    private static func condition(_ db: Firestore, _ random: inout SeededGenerator) -> Condition? {
        switch random.below(10) {
        case 0..<3: return nil
        case 3..<6: return single(db, &random, isAlone: true)
        case 6: return all([single(db, &random), single(db, &random)])
        case 7: return any([single(db, &random), single(db, &random)])
        case 8: return all([single(db, &random), any([single(db, &random), single(db, &random)])])
        default: return any([single(db, &random), all([single(db, &random), single(db, &random)])])
        }
    }

    private static func all(_ members: [Condition]) -> Condition {
        Condition(
            filter: .andFilter(members.map(\.filter)), string: "(\(members.map(\.string).joined(separator: " and ")))")
    }

    private static func any(_ members: [Condition]) -> Condition {
        Condition(
            filter: .orFilter(members.map(\.filter)), string: "(\(members.map(\.string).joined(separator: " or ")))")
    }

    private static func single(
        _ db: Firestore, _ random: inout SeededGenerator, isAlone: Bool = false
    ) -> Condition {
        if random.chance(5) {
            let document = db.document("c/d\(random.below(20))")
            return Condition(
                filter: .whereField(FieldPath.documentID(), isGreaterOrEqualTo: document),
                string: "name >= \(document.path)")
        }
        let isNumber = random.chance(50)
        let choices =
            isNumber
            ? conditions(on: random.pick(["b", "n.x"]), random.below(4))
            : conditions(on: random.pick(["a", "m"]), random.pick(values))
        return random.pick(isAlone ? choices : choices.filter { !$0.isNegative })
    }
}
