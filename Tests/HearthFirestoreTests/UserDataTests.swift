import Foundation
import HearthModel
import HearthSync
import Testing

@testable import HearthFirestore

/// The conversion of users' data to values, and its errors.
struct UserDataTests {
    private func value(_ value: Any) throws -> Value {
        let bench = try Bench()
        return try #require(try bench.firestore.reader.set(["v": value]).fields["v"])
    }

    @Test func numbersOfEveryWidth() throws {
        #expect(try value(3) == .integer(3))
        #expect(try value(Int8(-3)) == .integer(-3))
        #expect(try value(Int16(3)) == .integer(3))
        #expect(try value(Int32(3)) == .integer(3))
        #expect(try value(Int64.max) == .integer(.max))
        #expect(try value(Int64.min) == .integer(.min))
        #expect(try value(UInt8(3)) == .integer(3))
        #expect(try value(UInt16(3)) == .integer(3))
        #expect(try value(UInt32.max) == .integer(Int64(UInt32.max)))
        #expect(try value(UInt64(Int64.max)) == .integer(.max))
        #expect(try value(UInt(7)) == .integer(7))
        #expect(try value(1.5) == .double(1.5))
        #expect(try value(3.0) == .double(3))
        #expect(try value(Float(0.5)) == .double(0.5))
        #expect(try value(CGFloat(2)) == .double(2))
        #expect(try value(Decimal(2.5)) == .double(2.5))
        #expect(try value(-0.0) == .double(-0.0))
        #expect(try value(NSNumber(value: Int8(-3))) == .integer(-3))
        #expect(try value(NSNumber(value: 3)) == .integer(3))
        #expect(try value(NSNumber(value: 3.0)) == .double(3))
        #expect(try value(NSNumber(value: true)) == .boolean(true))
    }

    @Test func booleansAreNoNumbers() throws {
        #expect(try value(true) == .boolean(true))
        #expect(try value(false) == .boolean(false))
        #expect(try value(1) == .integer(1))
        #expect(try value(Int8(1)) == .integer(1))
        #expect(try value(1.0) == .double(1))
    }

    @Test func scalars() throws {
        #expect(try value("x") == .string("x"))
        #expect(try value(NSString("x")) == .string("x"))
        #expect(try value(NSNull()) == .null)
        #expect(try value(Data([1])) == .bytes([1]))
        #expect(try value(GeoPoint(latitude: 1, longitude: 2)) == .geoPoint(ModelGeoPoint(latitude: 1, longitude: 2)))
        #expect(try value(VectorValue([1])) == .vector([1]))
        let nothing: String? = nil
        #expect(try value(nothing as Any) == .null)
        let something: Int? = 4
        #expect(try value(something as Any) == .integer(4))
        let twice: Int?? = .some(nil)
        #expect(try value(twice as Any) == .null)
    }

    @Test func timesAreCutToMicroseconds() throws {
        #expect(
            try value(Timestamp(seconds: 5, nanoseconds: 123_456_789))
                == .timestamp(ModelTimestamp(microseconds: 5_123_456)))
        #expect(try value(Date(timeIntervalSince1970: 1.5)) == .timestamp(ModelTimestamp(microseconds: 1_500_000)))
        #expect(try value(Date(timeIntervalSince1970: -0.25)) == .timestamp(ModelTimestamp(microseconds: -250_000)))
    }

    @Test func datesComeBackAsTheyWere() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<10_000 {
            let stored = ModelTimestamp(microseconds: Int64.random(in: 0...4_000_000_000_000_000, using: &random))
            let date = Timestamp(stored).dateValue()
            #expect(try Timestamp.model(of: date) == stored, "\(stored.microseconds)")
            #expect(try Timestamp.model(of: Date.unwrap(date).dateValue()) == stored)
        }
    }

    @Test func containers() throws {
        #expect(try value([1, 2]) == .array([.integer(1), .integer(2)]))
        #expect(try value([1, "a", NSNull()] as [Any]) == .array([.integer(1), .string("a"), .null]))
        #expect(try value([Int]()) == .array([]))
        #expect(try value(["a": 1]) == .map(MapValue([.init(name: "a", value: .integer(1))])))
        #expect(try value([String: Any]()) == .map(MapValue()))
        #expect(try value(NSDictionary(dictionary: ["a": 1])) == .map(MapValue([.init(name: "a", value: .integer(1))])))
        #expect(try value(NSArray(array: [1])) == .array([.integer(1)]))
        #expect(
            try value([["a": [1]]])
                == .array([.map(MapValue([.init(name: "a", value: .array([.integer(1)]))]))]))
    }

    @Test func references() throws {
        let bench = try Bench()
        let own = bench.firestore.document("c/d")
        let parsed = try bench.firestore.reader.set(["r": own])
        #expect(parsed.fields["r"] == .reference("projects/projectID/databases/(default)/documents/c/d"))
        let other = Firestore.instance(
            app: bench.app, database: "other",
            factory: EngineFactory(
                make: { (_) throws(Status) in throw .unavailable("none") }, clearPersistence: { _ in }))
        expectFailure("is for database projectID/other but should be for database projectID/(default)") {
            () throws(Status) in
            _ = try bench.firestore.reader.set(["r": other.document("c/d")])
        }
    }

    // MARK: Errors

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

    @Test func refusedSets() throws {
        let reader = try Bench().firestore.reader
        let cases: [([String: Any], String)] = [
            (["a": [[1]]], "Nested arrays are not supported (found in field a)."),
            (["a": ["b": [[1]]]], "(found in field a.b)"),
            (
                ["a": [FieldValue.serverTimestamp()]],
                "FieldValue.serverTimestamp() is not currently supported inside arrays"
            ),
            (
                ["a": [["b": FieldValue.increment(Int64(1))]]],
                "FieldValue.increment() is not currently supported inside arrays"
            ),
            (
                ["a": FieldValue.delete()],
                "FieldValue.delete() can only be used with updateData() and setData() with merge:true"
            ),
            (["": 1], "Document fields must not be empty"),
            (["__a__": 1], "Document fields cannot begin and end with \"__\" (found in field __a__)"),
            (["a": ["__b__": 1]], "(found in field a.__b__)"),
            (["a": UInt64.max], "is too large for a signed 64-bit integer (found in field a)"),
            (["a": Set([1])], "Unsupported type: Set<Int> (found in field a)."),
            (["a": FieldValue.arrayUnion([FieldValue.delete()])], "cannot be used with FieldValue.arrayUnion()"),
            (["a": FieldValue.arrayUnion([[1]])], "Nested arrays are not supported"),
            (["a": Date(timeIntervalSince1970: 1e12)], "expected a time between the years 1 and 9999"),
        ]
        for (data, message) in cases { expectFailure(message) { () throws(Status) in _ = try reader.set(data) } }
    }

    @Test func deepNestingIsRefused() throws {
        let reader = try Bench().firestore.reader
        var value: Any = 1
        for _ in 0..<200 { value = ["x": value] }
        expectFailure("nests deeper") { () throws(Status) in _ = try reader.set(["a": value]) }
    }

    @Test func refusedUpdates() throws {
        let reader = try Bench().firestore.reader
        let cases: [([AnyHashable: Any], String)] = [
            (
                ["a": ["b": FieldValue.delete()]],
                "FieldValue.delete() can only appear at the top level of your update data"
            ),
            (["a..b": 1], "Paths must not be empty, begin with '.', end with '.', or contain '..'"),
            ([".a": 1], "begin with '.'"), (["a.": 1], "end with '.'"), (["": 1], "must not be empty"),
            (["a~b": 1], "must not contain '~'"), (["a[0]": 1], "must not contain '['"),
            (["a/b": 1], "must not contain '/'"),
            ([1: 1], "Dictionary keys passed to updateData must be of type String or FieldPath"),
            (["a.__b__": 1], "cannot begin and end with \"__\""),
        ]
        for (data, message) in cases { expectFailure(message) { () throws(Status) in _ = try reader.update(data) } }
    }

    @Test func refusedMerges() throws {
        let reader = try Bench().firestore.reader
        expectFailure("Field 'b' is specified in your field mask but missing from your input data") {
            () throws(Status) in
            _ = try reader.merge(["a": 1], fields: ["b"])
        }
        expectFailure("must be of type String or FieldPath") { () throws(Status) in
            _ = try reader.merge(["a": 1], fields: [1])
        }
    }

    @Test func mergesMaskTheirLeaves() throws {
        let reader = try Bench().firestore.reader
        let parsed = try reader.merge([
            "a": ["b": 1, "c": FieldValue.delete(), "e": [String: Any](), "t": FieldValue.serverTimestamp()],
            "l": [["x": 1]], "n": NSNull(),
        ])
        #expect(parsed.mask.map(\.string).sorted() == ["a.b", "a.c", "a.e", "l", "n"])
        #expect(parsed.transforms.map(\.path.string) == ["a.t"])
    }

    @Test func fieldPathsAndPointsAndTimes() {
        expectFailure("Provide at least one field name") { () throws(Status) in _ = try FieldPath.checked([]) }
        expectFailure("Invalid field name at index 1") { () throws(Status) in _ = try FieldPath.checked(["a", ""]) }
        expectFailure("latitude") { () throws(Status) in try GeoPoint.validate(91, 0) }
        expectFailure("latitude") { () throws(Status) in try GeoPoint.validate(.nan, 0) }
        expectFailure("longitude") { () throws(Status) in try GeoPoint.validate(0, -181) }
        expectFailure("nanoseconds") { () throws(Status) in try Timestamp.validate(0, -1) }
        expectFailure("nanoseconds") { () throws(Status) in try Timestamp.validate(0, 1_000_000_000) }
        expectFailure("seconds") { () throws(Status) in try Timestamp.validate(-62_135_596_801, 0) }
        expectFailure("seconds") { () throws(Status) in try Timestamp.validate(253_402_300_800, 0) }
    }

    @Test func paths() throws {
        let root = ResourcePath()
        #expect(try Paths.collection("/a/b/c/", below: root).string == "a/b/c")
        #expect(try Paths.document("a/b", below: root).string == "a/b")
        expectFailure("must not contain //") { () throws(Status) in _ = try Paths.collection("a//b", below: root) }
        expectFailure("cannot be empty") { () throws(Status) in _ = try Paths.document("", below: root) }
        expectFailure("odd number of segments") { () throws(Status) in _ = try Paths.collection("a/b", below: root) }
        expectFailure("even number of segments") { () throws(Status) in _ = try Paths.document("a", below: root) }
        expectFailure("must not contain '/'") { () throws(Status) in _ = try Paths.collectionID("a/b") }
        let id = Paths.newDocumentID()
        #expect(id.utf8.count == 20)
        #expect(id.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) })
        #expect(Paths.newDocumentID() != id)
    }
}
