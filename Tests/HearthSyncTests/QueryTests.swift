import HearthModel
import Testing

@testable import HearthSync

@Suite("Queries")
struct QueryTests {
    private static let collection = ClientQuery(path: ResourcePath("c"))

    private func query(_ filters: Filter..., orders: [(String, Bool)] = []) -> ClientQuery {
        var query = Self.collection
        query.filters = filters
        query.orders = orders.map { Query.Order(field: SpecQuery.fieldPath($0.0), descending: $0.1) }
        return query
    }

    private func matches(_ query: ClientQuery, _ fields: KeyValuePairs<String, Value>, _ key: String = "c/a") -> Bool {
        query.matches(.found(key, 1, fields))
    }

    @Test("Operators on a field")
    func operators() {
        let a = FieldPath("a")
        let cases: [(Filter.Operator, Value, matching: [Value], others: [Value])] = [
            (
                .equal, .integer(1), [.integer(1), .double(1)],
                [.integer(2), .string("1"), .null, .array([.integer(1)])]
            ),
            (.equal, .null, [.null], [.integer(0), .double(.nan)]),
            (.equal, .double(.nan), [.double(.nan)], [.integer(0), .null]),
            (
                .lessThan, .integer(5), [.integer(4), .double(-1e300)],
                [.integer(5), .string("4"), .null, .boolean(true)]
            ),
            (.lessThanOrEqual, .string("b"), [.string("b"), .string("")], [.string("ba"), .integer(1)]),
            (.greaterThan, .string("b"), [.string("ba")], [.string("b"), .bytes([255]), .null]),
            (.greaterThanOrEqual, .double(2.5), [.double(2.5), .integer(3)], [.integer(2), .double(.nan)]),
            (.notEqual, .integer(1), [.integer(2), .string("1"), .double(.nan)], [.integer(1), .double(1), .null]),
            (.notEqual, .null, [.integer(2), .boolean(false)], [.null]),
            (.notEqual, .double(.nan), [.integer(2)], [.double(.nan), .null]),
            (.in, .array([.integer(1), .string("x")]), [.double(1), .string("x")], [.integer(2), .null]),
            (.in, .array([.null, .double(.nan)]), [], [.null, .double(.nan)]),
            (.notIn, .array([.integer(1)]), [.integer(2), .string("x")], [.integer(1), .double(1), .null]),
            (.notIn, .array([.integer(1), .null]), [], [.integer(2), .null]),
            (
                .arrayContains, .integer(1), [.array([.integer(2), .double(1)])],
                [.integer(1), .array([]), .array([.array([.integer(1)])])]
            ),
            (
                .arrayContainsAny, .array([.integer(1), .string("x")]),
                [.array([.string("x")]), .array([.integer(1)])],
                [.array([.string("y")]), .string("x")]
            ),
        ]
        for (op, operand, matching, others) in cases {
            let query = query(.field(a, op, operand))
            for value in matching { #expect(matches(query, ["a": value]), "\(value) \(op) \(operand)") }
            for value in others { #expect(!matches(query, ["a": value]), "\(value) \(op) \(operand)") }
            #expect(!matches(query, ["b": .integer(1)]), "a missing field matches nothing")
        }
    }

    @Test("Composite filters, names, nested fields")
    func composite() {
        let a = Filter.field(FieldPath("a"), .equal, .integer(1))
        let b = Filter.field(FieldPath(segments: ["m", "b"]), .equal, .integer(2))
        #expect(matches(query(.or([a, b])), ["m": .map(["b": .integer(2)])]))
        #expect(!matches(query(.and([a, b])), ["m": .map(["b": .integer(2)])]))
        #expect(!matches(query(b), ["m.b": .integer(2)]))
        func name(_ id: String) -> Value { .reference("projects/p/databases/(default)/documents/c/\(id)") }
        let names = FieldPath.documentName
        #expect(matches(query(.field(names, .greaterThan, name("a"))), [:], "c/b"))
        #expect(!matches(query(.field(names, .greaterThan, name("a"))), [:], "c/a"))
        #expect(matches(query(.field(names, .in, .array([name("a"), name("b")]))), [:], "c/b"))
        #expect(!matches(query(.field(names, .notIn, .array([name("a")]))), [:], "c/a"))
    }

    @Test("An ordered field must exist, an implied one too")
    func orderFields() {
        #expect(!matches(query(orders: [("a", false)]), ["b": .null]))
        #expect(matches(query(orders: [("a", false)]), ["a": .null]))
        let either = Filter.or([
            .field(FieldPath("a"), .greaterThan, .integer(0)), .field(FieldPath("b"), .greaterThan, .integer(0)),
        ])
        #expect(!matches(query(either), ["a": .integer(1)]), "b is an order, too")
        #expect(matches(query(either), ["a": .integer(1), "b": .integer(-1)]))
    }

    @Test("Collections, groups and single documents")
    func paths() {
        #expect(!Self.collection.matches(.found("c/a/c/b")))
        #expect(!Self.collection.matches(.found("d/a")))
        #expect(
            !Self.collection.matches(ClientDocument(key: ResourcePath("c/a"), kind: .missing, version: .seconds(1))))
        let group = ClientQuery(path: ResourcePath(), collectionGroup: "c")
        #expect(group.matches(.found("c/a")) && group.matches(.found("x/y/c/b")) && !group.matches(.found("x/c")))
        let below = ClientQuery(path: ResourcePath("x/y"), collectionGroup: "c")
        #expect(below.matches(.found("x/y/c/b")) && !below.matches(.found("x/z/c/b")))
        let single = ClientQuery(path: ResourcePath("c/a"))
        #expect(single.isDocumentQuery && single.matches(.found("c/a")) && !single.matches(.found("c/b")))
    }

    @Test("Bounds, in both directions")
    func bounds() {
        func count(_ values: [Value], inclusive: Bool, start: Bool, descending: Bool) -> [Int64] {
            var query = self.query(orders: [("a", descending)])
            let bound = ClientQuery.Bound(values: values, isInclusive: inclusive)
            if start { query.start = bound } else { query.end = bound }
            return (1...3).filter { matches(query, ["a": .integer($0)]) }
        }
        #expect(count([.integer(2)], inclusive: true, start: true, descending: false) == [2, 3])
        #expect(count([.integer(2)], inclusive: false, start: true, descending: false) == [3])
        #expect(count([.integer(2)], inclusive: true, start: false, descending: false) == [1, 2])
        #expect(count([.integer(2)], inclusive: false, start: false, descending: false) == [1])
        #expect(count([.integer(2)], inclusive: true, start: true, descending: true) == [1, 2])
        #expect(count([.integer(2)], inclusive: false, start: false, descending: true) == [3])
        var query = self.query(orders: [("a", false)])
        let name = Value.reference("projects/p/databases/(default)/documents/c/b")
        query.start = ClientQuery.Bound(values: [.integer(2), name], isInclusive: false)
        #expect(!matches(query, ["a": .integer(2)], "c/b") && matches(query, ["a": .integer(2)], "c/c"))
    }

    @Test("Limit-to-last is reversed for the server only")
    func limitToLast() {
        var query = self.query(orders: [("a", false)])
        query.limit = 2
        query.limitType = .last
        query.start = ClientQuery.Bound(values: [.integer(1)], isInclusive: true)
        #expect(query.target.orders.map(\.descending) == [true, true])
        #expect(query.target.end == query.start && query.target.start == nil)
        #expect(query.comparator.orders.map(\.descending) == [false, false])
    }

    @Test("Queries are equal when they are one listen")
    func equality() {
        let filter = Filter.field(FieldPath("a"), .greaterThan, .integer(1))
        let plain = query(filter)
        let explicit = query(.and([filter]), orders: [("a", false), ("__name__", false)])
        #expect(plain == explicit && plain.hashValue == explicit.hashValue)
        #expect(plain != query(.field(FieldPath("a"), .greaterThan, .double(1))))
        var limited = plain
        limited.limit = 3
        var last = limited
        last.limitType = .last
        #expect(limited != plain && limited != last)
        #expect(query(.unary(FieldPath("a"), .isNull)) == query(.field(FieldPath("a"), .equal, .null)))
    }

    @Test("Targets are unchanged after encoding and decoding")
    func messages() throws {
        let serializer = TargetSerializer(database: DatabaseName(project: "p"))
        let a = Filter.field(FieldPath("a"), .equal, .null)
        let b = Filter.field(FieldPath("b"), .notEqual, .double(.nan))
        let queries = [
            query(a), query(b), query(a, b), query(.and([a, .or([b, .and([a, b])])])), query(.or([.and([a]), b])),
            ClientQuery(path: ResourcePath("__bundle__/docs/some/more")),
        ]
        for query in queries {
            let target = query.target
            #expect(try serializer.target(serializer.message(target)) == target)
        }
        #expect(throws: Status.self) { try serializer.target(.init()) }
        let other = TargetSerializer(database: DatabaseName(project: "pp"))
        #expect(throws: Status.self) { try serializer.target(other.message(queries[0].target)) }
    }
}
