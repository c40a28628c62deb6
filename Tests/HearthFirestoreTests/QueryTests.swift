import Foundation
import HearthModel
import HearthSync
import Testing

@testable import HearthFirestore

struct QueryTests {
    private let bench: Bench
    private let cities: CollectionReference

    init() throws {
        bench = try Bench()
        cities = bench.firestore.collection("cities")
    }

    private func field(_ name: String, _ op: HearthModel.Filter.Operator, _ value: Any) -> Filter.Expression {
        .field(
            ModelFieldPath(segments: name == "__name__" ? [name] : name.split(separator: ".").map(String.init)), op,
            Carried(value))
    }

    private func expectFailure(
        _ message: String, _ body: () throws(Status) -> Void, _ location: SourceLocation = #_sourceLocation
    ) {
        do {
            try body()
            Issue.record("must fail: \(message)", sourceLocation: location)
        } catch {
            #expect(error.code == .invalidArgument, sourceLocation: location)
            #expect(error.message.contains(message), "\(error.message)", sourceLocation: location)
        }
    }

    @Test func limits() throws {
        expectFailure("Limit must be positive") { () throws(Status) in _ = try cities.limited(0, .first) }
        expectFailure("Limit must be positive") { () throws(Status) in _ = try cities.limited(-1, .last) }
        expectFailure("at least one order(by:)") { () throws(Status) in try cities.limit(toLast: 2).validateForRun() }
        try cities.order(by: "a").limit(toLast: 2).validateForRun()
        #expect(cities.limit(to: 2).model.limitType == .first)
    }

    @Test func ordersComeBeforeCursors() {
        let started = cities.order(by: "a").start(at: [1])
        expectFailure("starting point before specifying the order by") { () throws(Status) in
            _ = try started.ordered(ModelFieldPath("b"), false)
        }
        let ended = cities.order(by: "a").end(before: [1])
        expectFailure("ending point before specifying the order by") { () throws(Status) in
            _ = try ended.ordered(ModelFieldPath("b"), false)
        }
        expectFailure("more values than were specified") { () throws(Status) in
            _ = try cities.order(by: "a").values([1, 2])
        }
    }

    @Test func cursorDocuments() {
        let query = cities.order(by: "a")
        expectFailure("document that doesn't exist") { () throws(Status) in
            _ = try query.values(of: bench.snapshot("cities/x", nil))
        }
        expectFailure("the field 'a' (used as the order by) does not exist") { () throws(Status) in
            _ = try query.values(of: bench.snapshot("cities/x", [.init(name: "b", value: .null)]))
        }
        let pending = Value.map(
            MapValue([
                .init(name: "__type__", value: .string("server_timestamp")),
                .init(name: "__local_write_time__", value: .timestamp(ModelTimestamp(microseconds: 1))),
            ]))
        expectFailure("uncommitted server timestamp") { () throws(Status) in
            _ = try query.values(of: bench.snapshot("cities/x", [.init(name: "a", value: pending)]))
        }
    }

    @Test func operatorsSideBySide() throws {
        let refused: [(HearthModel.Filter.Operator, HearthModel.Filter.Operator, String)] = [
            (.notEqual, .notEqual, "more than one 'isNotEqualTo'"), (.notIn, .notIn, "more than one 'notIn'"),
            (.notIn, .notEqual, "'notEqual"), (.notEqual, .notIn, "'notIn'"), (.notIn, .in, "'in' filters"),
            (.in, .notIn, "'in' filters with 'notIn'"), (.notIn, .arrayContainsAny, "'arrayContainsAny'"),
            (.arrayContainsAny, .notIn, "'notIn'"),
        ]
        for (first, second, _) in refused {
            let query = try cities.filtered(field("a", first, [1]))
            expectFailure("Invalid Query. You cannot use") { () throws(Status) in
                _ = try query.filtered(field("b", second, [1]))
            }
            expectFailure("Invalid Query. You cannot use") { () throws(Status) in
                _ = try query.filtered(.or([field("b", second, [1]), field("c", .equal, 1)]))
            }
        }
        _ = try cities.filtered(field("a", .in, [1])).filtered(field("b", .arrayContainsAny, [1]))
        _ = try cities.filtered(field("a", .in, [1])).filtered(field("b", .in, [1]))
    }

    @Test func listsMustNotBeEmpty() {
        for op in [HearthModel.Filter.Operator.in, .notIn, .arrayContainsAny] {
            expectFailure("A non-empty array is required") { () throws(Status) in
                _ = try cities.filtered(field("a", op, [Any]()))
            }
        }
    }

    @Test func documentIDs() throws {
        let name = "projects/projectID/databases/(default)/documents/cities/x"
        let byString = try cities.filtered(field("__name__", .equal, "x"))
        #expect(operand(byString) == .reference(name))
        #expect(operand(try cities.filtered(field("__name__", .equal, cities.document("x")))) == .reference(name))
        #expect(operand(try cities.filtered(field("__name__", .in, ["x"]))) == .array([.reference(name)]))
        expectFailure("empty string") { () throws(Status) in _ = try cities.filtered(field("__name__", .equal, "")) }
        expectFailure("contains a '/'") { () throws(Status) in _ = try cities.filtered(field("__name__", .equal, "a/b"))
        }
        expectFailure("valid string or DocumentReference") { () throws(Status) in
            _ = try cities.filtered(field("__name__", .equal, 1))
        }
        expectFailure("document IDs are not arrays") { () throws(Status) in
            _ = try cities.filtered(field("__name__", .arrayContains, "x"))
        }
        let group = bench.firestore.collectionGroup("cities")
        #expect(operand(try group.filtered(field("__name__", .equal, "cities/x"))) == .reference(name))
        expectFailure("odd number of segments") { () throws(Status) in
            _ = try group.filtered(field("__name__", .equal, "x"))
        }
        expectFailure("odd number of segments") { () throws(Status) in
            _ = try group.order(by: FieldPath.documentID()).values(["x"])
        }
        expectFailure("Expected a string for the document ID") { () throws(Status) in
            _ = try cities.order(by: FieldPath.documentID()).values([1])
        }
    }

    private func operand(_ query: Query) -> Value? {
        guard case .field(_, _, let value)? = query.model.filters.first else { return nil }
        return value
    }

    @Test func composites() throws {
        let query = cities.whereFilter(
            Filter.orFilter([
                Filter.whereField("a", isEqualTo: 1),
                Filter.andFilter([Filter.whereField("b", isGreaterOrEqualTo: 2), Filter.whereField("c", isLessThan: 3)]
                ),
            ]))
        guard case .or(let members)? = query.model.filters.first, case .and(let inner) = members[1] else {
            Issue.record("an OR of two")
            return
        }
        #expect(members.count == 2)
        #expect(inner.count == 2)
        #expect(cities.whereFilter(Filter.andFilter([])) == cities)
        #expect(
            cities.whereFilter(Filter.orFilter([Filter.whereField("a", isEqualTo: 1)]))
                == cities.whereField("a", isEqualTo: 1))
        // Arrays are valid operands in a list of values.
        #expect(
            operand(try cities.filtered(field("a", .in, [[1], [2]])))
                == .array([.array([.integer(1)]), .array([.integer(2)])]))
    }

    @Test func equality() throws {
        let db = bench.firestore
        #expect(db.collection("a") == db.collection("a"))
        #expect(db.collection("a") != db.collection("b"))
        #expect(db.collection("a").whereField("x", isEqualTo: 1) == db.collection("a").whereField("x", isEqualTo: 1))
        #expect(db.collection("a").whereField("x", isEqualTo: 1) != db.collection("a").whereField("x", isEqualTo: 1.0))
        #expect(db.collection("a").limit(to: 1) != db.collection("a").order(by: "x").limit(toLast: 1))
        #expect(Set([db.document("a/b"), db.document("a/b")]).count == 1)
        #expect(db.document("a/b") != (try Bench()).firestore.document("a/b"))
        #expect(db.document("a/b").parent == db.collection("a"))
        #expect(db.collection("a/b/c").parent == db.document("a/b"))
        #expect(db.collection("a").parent == nil)
        #expect(db.document("a/b").collection("c").document("d").path == "a/b/c/d")
        #expect(db.collectionGroup("a") == db.collectionGroup("a"))
        #expect(db.collectionGroup("a") != db.collection("a"))
    }
}
