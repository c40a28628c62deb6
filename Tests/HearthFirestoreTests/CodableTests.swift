import Foundation
import HearthModel
import Testing

@testable import HearthApp
@testable import HearthFirestore

struct CodableTests {
    private struct Venue: Codable, Equatable {
        var name: String
        var population: Int
        var area: Double
        var isCapital: Bool
        var location: GeoPoint
        var founded: Date
        var seen: Timestamp
        var twin: DocumentReference?
        var flag: Data
        var embedding: VectorValue
        var tags: [String]
        var counts: [String: Int]
        var mayor: Mayor?
        var site: URL
        var kind: Kind

        enum Kind: String, Codable { case town, city }
        struct Mayor: Codable, Equatable { var name: String; var terms: [Int] }
    }

    private func venue(_ db: Firestore) -> Venue {
        Venue(
            name: "Bern", population: 140_000, area: 51.6, isCapital: true,
            location: GeoPoint(latitude: 47, longitude: 7.4),
            founded: Date(timeIntervalSince1970: 1.5), seen: Timestamp(seconds: 5, nanoseconds: 6000),
            twin: db.document("cities/zrh"), flag: Data([1, 2]), embedding: VectorValue([1, 2.5]), tags: ["a", "b"],
            counts: ["one": 1, "TwoTwo": 2], mayor: .init(name: "A", terms: [1, 2]),
            site: URL(string: "https://bern.ch")!,
            kind: .city)
    }

    @Test func roundTrip() throws {
        let db = try Bench().firestore
        let venue = venue(db)
        let data = try Firestore.Encoder().encode(venue)
        #expect(data["population"] as? Int == 140_000)
        #expect((data["isCapital"] as? NSNumber)?.holdsBoolean == true)
        #expect(data["location"] is GeoPoint)
        #expect(data["founded"] as? Timestamp == Timestamp(seconds: 1, nanoseconds: 500_000_000))
        #expect(data["twin"] is DocumentReference)
        #expect(data["flag"] is Data)
        #expect(data["embedding"] is VectorValue)
        #expect(data["site"] as? String == "https://bern.ch")
        #expect(try Firestore.Decoder().decode(Venue.self, from: data) == venue)
    }

    /// Through the model's values, as the server would return them.
    @Test func roundTripThroughADocument() throws {
        let bench = try Bench()
        let venue = venue(bench.firestore)
        let fields = try bench.firestore.reader.set(try Firestore.Encoder().encode(venue)).fields
        let snapshot = bench.snapshot("cities/bern", fields.fields)
        #expect(try snapshot.data(as: Venue.self) == venue)
    }

    private struct Wrapped: Codable, Equatable {
        @DocumentID var id: String?
        @DocumentID var ref: DocumentReference?
        var name: String
        @ServerTimestamp var updated: Timestamp?
        @ServerTimestamp var seen: Date?
        @ExplicitNull var mayor: String?
        var nick: String?
    }

    @Test func wrappers() throws {
        let bench = try Bench()
        let data = try Firestore.Encoder().encode(Wrapped(name: "Bern"))
        #expect(Set(data.keys) == ["name", "updated", "seen", "mayor"])
        #expect(data["updated"] as? FieldValue == FieldValue.serverTimestamp())
        #expect(data["seen"] as? FieldValue == FieldValue.serverTimestamp())
        #expect(data["mayor"] is NSNull)

        let filled = Wrapped(
            name: "Bern", updated: Timestamp(seconds: 1, nanoseconds: 0), seen: Date(timeIntervalSince1970: 2),
            mayor: "M")
        let encoded = try Firestore.Encoder().encode(filled)
        #expect(encoded["seen"] as? Timestamp == Timestamp(seconds: 2, nanoseconds: 0))
        var stored = try bench.firestore.reader.set(encoded).fields
        // A field with the id's name is ignored.
        stored.set("id", .integer(5))
        let decoded = try bench.snapshot("cities/bern", stored.fields).data(as: Wrapped.self)
        #expect(decoded.id == "bern")
        #expect(decoded.ref?.path == "cities/bern")
        #expect(decoded.updated == filled.updated)
        #expect(decoded.seen == filled.seen)
        #expect(decoded.mayor == "M")
    }

    @Test func nullsAndMissingKeys() throws {
        let bench = try Bench()
        let ref = bench.firestore.document("c/d")
        let decoder = Firestore.Decoder()
        let nulls: [String: Any] = ["name": "x", "updated": NSNull(), "seen": NSNull(), "mayor": NSNull()]
        let decoded = try decoder.decode(Wrapped.self, from: nulls, in: ref)
        #expect(decoded.updated == nil)
        #expect(decoded.mayor == nil)
        for key in ["updated", "seen", "mayor", "name"] {
            var map = nulls
            map[key] = nil
            #expect(throws: DecodingError.self) { try decoder.decode(Wrapped.self, from: map, in: ref) }
        }
        #expect(throws: FirestoreDecodingError.self) { try decoder.decode(Wrapped.self, from: nulls) }
        #expect(throws: DecodingError.self) {
            try decoder.decode(Wrapped.self, from: ["name": NSNull(), "updated": 1], in: ref)
        }
    }

    @Test func missingDocuments() throws {
        let bench = try Bench()
        let missing = bench.snapshot("c/d", nil)
        #expect(try missing.data(as: Wrapped?.self) == nil)
        #expect(throws: DecodingError.self) { try missing.data(as: Wrapped.self) }
    }

    @Test func otherCoders() throws {
        let ref = try Bench().firestore.document("c/d")
        #expect(throws: FirestoreEncodingError.self) { try JSONEncoder().encode(["r": ref]) }
        #expect(throws: FirestoreEncodingError.self) { try JSONEncoder().encode(["r": FieldValue.delete()]) }
        #expect(throws: FirestoreEncodingError.self) { try JSONEncoder().encode(Wrapped(id: nil, name: "x")) }
        #expect(throws: FirestoreDecodingError.self) {
            try JSONDecoder().decode([String: DocumentReference].self, from: Data(#"{"r": "x"}"#.utf8))
        }
        func through<T: Codable>(_ value: T) throws -> T {
            try JSONDecoder().decode(T.self, from: JSONEncoder().encode(value))
        }
        #expect(try through(GeoPoint(latitude: 1, longitude: 2)) == GeoPoint(latitude: 1, longitude: 2))
        #expect(try through(Timestamp(seconds: 1, nanoseconds: 2)) == Timestamp(seconds: 1, nanoseconds: 2))
        #expect(try through(VectorValue([1])) == VectorValue([1]))
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(GeoPoint.self, from: Data(#"{"latitude": 100, "longitude": 0}"#.utf8))
        }
    }

    private struct Dated: Codable, Equatable { var at: Date }
    private struct Bytes: Codable, Equatable { var data: Data }
    private struct Number: Codable, Equatable { var number: Double }
    private struct Named: Codable, Equatable { var firstName: String; var homeURL: [String: Int] }

    @Test func dateStrategies() throws {
        let dated = Dated(at: Date(timeIntervalSince1970: 1000))
        let formatter = DateFormatter()
        formatter.dateFormat = "yyyy-MM-dd HH:mm:ss Z"
        formatter.locale = Locale(identifier: "en_US_POSIX")
        let cases: [(FirebaseDataEncoder.DateEncodingStrategy, FirebaseDataDecoder.DateDecodingStrategy, Any.Type)] = [
            (.timestamp, .timestamp, Timestamp.self), (.deferredToDate, .deferredToDate, NSNumber.self),
            (.secondsSince1970, .secondsSince1970, NSNumber.self),
            (.millisecondsSince1970, .millisecondsSince1970, NSNumber.self), (.iso8601, .iso8601, String.self),
            (.formatted(formatter), .formatted(formatter), String.self),
            (
                .custom { date, encoder in
                    var container = encoder.singleValueContainer()
                    try container.encode("\(Int(date.timeIntervalSince1970))")
                },
                .custom { decoder in
                    Date(timeIntervalSince1970: Double(try decoder.singleValueContainer().decode(String.self))!)
                }, String.self
            ),
        ]
        for (encoding, decoding, type) in cases {
            let encoder = Firestore.Encoder()
            encoder.dateEncodingStrategy = encoding
            let data = try encoder.encode(dated)
            #expect(Swift.type(of: data["at"]!) == type || (type == NSNumber.self && data["at"] is NSNumber))
            let decoder = Firestore.Decoder()
            decoder.dateDecodingStrategy = decoding
            #expect(try decoder.decode(Dated.self, from: data) == dated)
        }
        let seconds = Firestore.Encoder()
        seconds.dateEncodingStrategy = .secondsSince1970
        #expect(try seconds.encode(dated)["at"] as? Double == 1000)
    }

    @Test func impossibleDatesAreErrors() {
        #expect(throws: EncodingError.self) {
            try Firestore.Encoder().encode(Dated(at: Date(timeIntervalSince1970: 1e13)))
        }
    }

    @Test func dataStrategies() throws {
        let bytes = Bytes(data: Data([1, 255]))
        let cases: [(FirebaseDataEncoder.DataEncodingStrategy, FirebaseDataDecoder.DataDecodingStrategy)] = [
            (.blob, .blob), (.base64, .base64), (.deferredToData, .deferredToData),
        ]
        for (encoding, decoding) in cases {
            let encoder = Firestore.Encoder()
            encoder.dataEncodingStrategy = encoding
            let decoder = Firestore.Decoder()
            decoder.dataDecodingStrategy = decoding
            #expect(try decoder.decode(Bytes.self, from: encoder.encode(bytes)) == bytes)
        }
        let base64 = Firestore.Encoder()
        base64.dataEncodingStrategy = .base64
        #expect(try base64.encode(bytes)["data"] as? String == "Af8=")
    }

    @Test func floatStrategies() throws {
        for number in [Double.nan, .infinity, -.infinity] {
            #expect(throws: EncodingError.self) { try Firestore.Encoder().encode(Number(number: number)) }
            let encoder = Firestore.Encoder()
            encoder.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "+", negativeInfinity: "-", nan: "?")
            let decoder = Firestore.Decoder()
            decoder.nonConformingFloatDecodingStrategy = .convertFromString(
                positiveInfinity: "+", negativeInfinity: "-", nan: "?")
            let data = try encoder.encode(Number(number: number))
            #expect(data["number"] is String)
            let decoded = try decoder.decode(Number.self, from: data).number
            #expect(decoded == number || (decoded.isNaN && number.isNaN))
            #expect(throws: DecodingError.self) { try Firestore.Decoder().decode(Number.self, from: data) }
        }
    }

    @Test func keyStrategies() throws {
        let named = Named(firstName: "A", homeURL: ["keepThis": 1])
        let encoder = Firestore.Encoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let data = try encoder.encode(named)
        #expect(Set(data.keys) == ["first_name", "home_url"])
        #expect((data["home_url"] as? [String: Any])?["keepThis"] as? Int == 1)
        encoder.keyEncodingStrategy = .custom { path in PlainKey(stringValue: "x_" + path.last!.stringValue) }
        #expect(Set(try encoder.encode(named).keys) == ["x_firstName", "x_homeURL"])
        let decoder = Firestore.Decoder()
        decoder.keyDecodingStrategy = .custom { path in
            PlainKey(stringValue: String(path.last!.stringValue.dropFirst(2)))
        }
        #expect(try decoder.decode(Named.self, from: encoder.encode(named)) == named)
        let cases = [
            ("oneTwo", "one_two"), ("myURLProperty", "my_url_property"), ("_private", "_private"), ("a", "a"),
            ("URL", "url"), ("someID", "some_id"),
        ]
        for (camel, snake) in cases { #expect(SnakeCase.from(camel: camel) == snake) }
        let back = [("one_two", "oneTwo"), ("_one_two_", "_oneTwo_"), ("one", "one"), ("__", "__"), ("a__b", "aB")]
        for (snake, camel) in back { #expect(SnakeCase.toCamel(snake) == camel) }
    }

    @Test func numbersMustFit() throws {
        struct Small: Decodable { var n: Int8 }
        struct Flag: Decodable { var n: Bool }
        struct Whole: Decodable { var n: Int }
        let decoder = Firestore.Decoder()
        #expect(try decoder.decode(Small.self, from: ["n": 100]).n == 100)
        #expect(throws: DecodingError.self) { try decoder.decode(Small.self, from: ["n": 300]) }
        #expect(throws: DecodingError.self) { try decoder.decode(Flag.self, from: ["n": 1]) }
        #expect(throws: DecodingError.self) { try decoder.decode(Whole.self, from: ["n": true]) }
        #expect(throws: DecodingError.self) { try decoder.decode(Whole.self, from: ["n": 1.5]) }
        #expect(try decoder.decode(Whole.self, from: ["n": 2.0]).n == 2)
        #expect(throws: DecodingError.self) { try decoder.decode(Whole.self, from: ["n": "2"]) }
        #expect(try decoder.decode([Int].self, from: [1, 2]) == [1, 2])
    }

    @Test func topLevelMustBeAnObject() {
        #expect(throws: EncodingError.self) { try Firestore.Encoder().encode(5) }
        #expect(throws: EncodingError.self) { try Firestore.Encoder().encode([1, 2]) }
        #expect(throws: EncodingError.self) { try Firestore.Encoder().encode(Optional<Int>.none) }
        #expect((try? Firestore.Encoder().encode(["a": 1]))?["a"] as? Int == 1)
    }

    private class Base: Codable {
        var base = 1
    }
    private final class Derived: Base {
        var derived = 2
        enum Keys: String, CodingKey { case derived }
        override init() { super.init() }
        required init(from decoder: any Swift.Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            derived = try container.decode(Int.self, forKey: .derived)
            try super.init(from: container.superDecoder())
        }
        override func encode(to encoder: any Swift.Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(derived, forKey: .derived)
            try super.encode(to: container.superEncoder())
        }
    }

    @Test func classesWithSuperclasses() throws {
        let object = Derived()
        object.base = 7
        let data = try Firestore.Encoder().encode(object)
        let decoded = try Firestore.Decoder().decode(Derived.self, from: data)
        #expect(decoded.base == 7)
        #expect(decoded.derived == 2)
    }

    private enum Shape: Codable, Equatable {
        case circle(radius: Double)
        case square(Int, named: String)
        case none
    }

    @Test func enumsWithValues() throws {
        for shape in [Shape.circle(radius: 1.5), .square(2, named: "x"), .none] {
            #expect(try Firestore.Decoder().decode(Shape.self, from: Firestore.Encoder().encode(shape)) == shape)
        }
    }

    @Test func userInfoReachesTheType() throws {
        struct Asking: Codable {
            static let key = CodingUserInfoKey(rawValue: "k")!
            enum CodingKeys: String, CodingKey { case seen }
            var seen: Int
            init() { seen = 0 }
            init(from decoder: any Swift.Decoder) throws { seen = decoder.userInfo[Self.key] as? Int ?? -1 }
            func encode(to encoder: any Swift.Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(encoder.userInfo[Self.key] as? Int ?? -1, forKey: .seen)
            }
        }
        let encoder = Firestore.Encoder()
        encoder.userInfo[Asking.key] = 5
        #expect(try encoder.encode(Asking())["seen"] as? Int == 5)
        let decoder = Firestore.Decoder()
        decoder.userInfo[Asking.key] = 6
        #expect(try decoder.decode(Asking.self, from: [String: Any]()).seen == 6)
    }

    @Test func fieldValuesPassThrough() throws {
        struct Patch: Encodable { var n: FieldValue; var nested: [String: FieldValue] }
        let increment = FieldValue.increment(Int64(1))
        let data = try Firestore.Encoder().encode(Patch(n: increment, nested: ["x": FieldValue.delete()]))
        #expect(data["n"] as? FieldValue == increment)
        #expect((data["nested"] as? [String: Any])?["x"] as? FieldValue == FieldValue.delete())
    }
}
