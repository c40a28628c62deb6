import Foundation
import HearthModel
import Testing

@testable import HearthFirestore

/// The values of `data()` can be cast as on Apple platforms.
struct CastTests {
    private func data(_ fields: [String: Value]) throws -> [String: Any] {
        let bench = try Bench()
        let document = bench.document("c/d", fields)
        return QueryDocumentSnapshot(
            firestore: bench.firestore, found: document,
            metadata: SnapshotMetadata(hasPendingWrites: false, isFromCache: false)
        ).data()
    }

    @Test func integers() throws {
        let data = try data([
            "n": .integer(3), "big": .integer(.max), "low": .integer(-7), "exact": .integer(1 << 53 + 1),
        ])
        #expect(data["n"] as? Int == 3)
        #expect(data["n"] as? Int64 == 3)
        #expect(data["n"] as? Int32 == 3)
        #expect(data["n"] as? UInt8 == 3)
        #expect(data["n"] as? Double == 3)
        #expect(data["n"] as? Float == 3)
        #expect(data["n"] as? NSNumber == 3)
        #expect(data["n"] as? String == nil)
        #expect(data["n"] as? Bool == nil)
        #expect(data["big"] as? Int == .max)
        #expect(data["big"] as? Int32 == nil)
        #expect(data["low"] as? Int == -7)
        #expect(data["low"] as? UInt == nil)
        #expect(data["exact"] as? Int == 1 << 53 + 1)
    }

    @Test func oneAndZeroAreBooleansToo() throws {
        let data = try data(["one": .integer(1), "zero": .integer(0), "two": .integer(2)])
        #expect(data["one"] as? Bool == true)
        #expect(data["zero"] as? Bool == false)
        #expect(data["two"] as? Bool == nil)
    }

    @Test func booleans() throws {
        let data = try data(["t": .boolean(true), "f": .boolean(false)])
        #expect(data["t"] as? Bool == true)
        #expect(data["f"] as? Bool == false)
        #expect(data["t"] as? Int == 1)
        #expect(data["t"] as? NSNumber == true)
        #expect((data["t"] as? NSNumber)?.holdsBoolean == true)
        #expect(data["t"] as? String == nil)
    }

    @Test func doubles() throws {
        let data = try data(["whole": .double(2), "half": .double(0.5), "nan": .double(.nan), "tenth": .double(0.1)])
        #expect(data["whole"] as? Double == 2)
        #expect(data["whole"] as? Int == 2)
        #expect(data["half"] as? Double == 0.5)
        #expect(data["half"] as? Int == nil)
        #expect((data["nan"] as? Double)?.isNaN == true)
        #expect(data["tenth"] as? Double == 0.1)
        #expect(data["tenth"] as? NSNumber == 0.1)
    }

    @Test func nested() throws {
        let data = try data([
            "list": .array([.integer(1), .integer(2)]),
            "mixed": .array([.integer(1), .string("x"), .map(MapValue([.init(name: "b", value: .boolean(true))]))]),
            "map": .map(
                MapValue([
                    .init(name: "a", value: .integer(1)),
                    .init(name: "b", value: .map(MapValue([.init(name: "c", value: .double(1.5))]))),
                ])),
            "counts": .map(MapValue([.init(name: "x", value: .integer(4))])),
            "strings": .array([.string("p"), .string("q")]),
        ])
        #expect(data["list"] as? [Int] == [1, 2])
        #expect(data["list"] as? [Double] == [1, 2])
        #expect((data["list"] as? [Any])?.first as? Int64 == 1)
        #expect(data["strings"] as? [String] == ["p", "q"])
        let mixed = try #require(data["mixed"] as? [Any])
        #expect(mixed[0] as? Int == 1)
        #expect(mixed[1] as? String == "x")
        #expect((mixed[2] as? [String: Any])?["b"] as? Bool == true)
        #expect((mixed[2] as? [String: Bool])?["b"] == true)
        let map = try #require(data["map"] as? [String: Any])
        #expect(map["a"] as? Int == 1)
        #expect((map["b"] as? [String: Any])?["c"] as? Double == 1.5)
        #expect((map["b"] as? [String: Double]) == ["c": 1.5])
        #expect(data["counts"] as? [String: Int] == ["x": 4])
        #expect(data["map"] as? [String: Int] == nil)
    }

    @Test func switches() throws {
        let data = try data(["n": .integer(5), "t": .string("x")])
        switch data["n"]! {
        case is String: Issue.record("a number is not a string")
        case let number as Int: #expect(number == 5)
        default: Issue.record("an integer must match Int")
        }
        switch data["t"]! {
        case is NSNumber: Issue.record("a string is not a number")
        case let string as String: #expect(string == "x")
        default: Issue.record("a string must match String")
        }
    }

    @Test func otherTypes() throws {
        let data = try data([
            "null": .null, "bytes": .bytes([1, 2]), "time": .timestamp(ModelTimestamp(microseconds: 1_500_000)),
            "location": .geoPoint(ModelGeoPoint(latitude: 1, longitude: 2)), "vector": .vector([1, 2]),
            "ref": .reference("projects/projectID/databases/(default)/documents/c/other"),
        ])
        #expect(data["null"] is NSNull)
        #expect(data["bytes"] as? Data == Data([1, 2]))
        #expect(data["time"] as? Timestamp == Timestamp(seconds: 1, nanoseconds: 500_000_000))
        #expect(data["time"] as? Date == nil)
        #expect(data["location"] as? GeoPoint == GeoPoint(latitude: 1, longitude: 2))
        #expect(data["vector"] as? VectorValue == VectorValue([1, 2]))
        #expect((data["ref"] as? DocumentReference)?.path == "c/other")
    }

    @Test func fields() throws {
        let bench = try Bench()
        let snapshot = bench.snapshot(
            "c/d",
            [
                .init(name: "a.b", value: .integer(1)),
                .init(name: "m", value: .map(MapValue([.init(name: "x", value: .integer(2))]))),
            ])
        #expect(snapshot.get("m.x") as? Int == 2)
        #expect(snapshot["m.x"] as? Int == 2)
        #expect(snapshot.get(FieldPath(["a.b"])) as? Int == 1)
        #expect(snapshot.get("missing") == nil)
        #expect(snapshot.get("m.x.y") == nil)
        #expect((snapshot.get(FieldPath.documentID()) as? DocumentReference)?.path == "c/d")
        #expect(bench.snapshot("c/none", nil).data() == nil)
        #expect(bench.snapshot("c/none", nil).get("a") == nil)
    }

    @Test func pendingServerTimestamps() throws {
        let bench = try Bench()
        func pending(_ previous: Value?) -> Value {
            var fields: [MapValue.Field] = [
                .init(name: "__type__", value: .string("server_timestamp")),
                .init(name: "__local_write_time__", value: .timestamp(ModelTimestamp(microseconds: 7_000_000))),
            ]
            if let previous { fields.append(.init(name: "__previous_value__", value: previous)) }
            return .map(MapValue(fields))
        }
        let snapshot = bench.snapshot(
            "c/d", [.init(name: "new", value: pending(nil)), .init(name: "old", value: pending(.integer(4)))])
        #expect(snapshot.data()?["new"] is NSNull)
        #expect(snapshot.data(with: .none)?["old"] is NSNull)
        #expect(snapshot.data(with: .estimate)?["old"] as? Timestamp == Timestamp(seconds: 7, nanoseconds: 0))
        #expect(snapshot.data(with: .previous)?["old"] as? Int == 4)
        #expect(snapshot.data(with: .previous)?["new"] is NSNull)
        #expect(snapshot.get("old", serverTimestampBehavior: .previous) as? Int == 4)
    }
}
