import Foundation
import Testing

@testable import HearthApp
@testable import HearthDatabase

struct ApiCodableTests {
    private func encode(_ value: some Encodable, _ set: (Database.Encoder) -> Void = { _ in }) throws -> NSDictionary {
        let encoder = Database.Encoder()
        set(encoder)
        return try #require(try encoder.encode(["v": value]) as? NSDictionary)
    }

    private func decode<T: Decodable>(
        _ type: T.Type, _ value: Any, _ set: (Database.Decoder) -> Void = { _ in }
    ) throws -> T {
        let decoder = Database.Decoder()
        set(decoder)
        return try decoder.decode(type, from: value)
    }

    private struct City: Codable, Equatable {
        var name: String
        var population: Int
        var isCapital: Bool
        var area: Double?
        var mayors: [String]
        var site: URL?
        var budget: Decimal?
        var twins: [String: Int]
    }

    @Test func roundTrip() throws {
        let city = City(
            name: "Bern", population: 140_000, isCapital: true, area: nil, mayors: ["a", "b"],
            site: URL(string: "https://bern.ch"), budget: 1.5, twins: ["Basel": 1])
        let encoded = try Database.Encoder().encode(city)
        let map = try #require(encoded as? [String: Any])
        #expect(map["population"] as? Int == 140_000)
        #expect((map["isCapital"] as? NSNumber)?.holdsBoolean == true)
        #expect(map["area"] == nil)
        #expect(map["site"] as? String == "https://bern.ch")
        #expect(try Database.Decoder().decode(City.self, from: encoded) == city)
        // Through the database's own form.
        let node = try ValueReader(call: "").node(encoded, at: "/")
        #expect(try Database.Decoder().decode(City.self, from: ValueWriter.plain(node)) == city)
    }

    @Test func topLevelNeedNotBeAnObject() throws {
        #expect(try Database.Encoder().encode(1) as? Int == 1)
        #expect(try Database.Encoder().encode("x") as? String == "x")
        #expect(try Database.Encoder().encode([1, 2]) as? [Int] == [1, 2])
        #expect(try Database.Encoder().encode(Int?.none) is NSNull)
        #expect(try decode(Int?.self, NSNull()) == nil)
        #expect(try decode([Int?].self, [1, NSNull(), 3]) == [1, nil, 3])
        #expect(throws: DecodingError.self) { try decode(Int.self, NSNull()) }
    }

    @Test func numbers() throws {
        #expect(try decode(Int.self, NSNumber(value: 3.0)) == 3)
        #expect(try decode(Double.self, NSNumber(value: 3)) == 3)
        #expect(throws: DecodingError.self) { try decode(Int.self, NSNumber(value: 3.5)) }
        #expect(throws: DecodingError.self) { try decode(Int8.self, NSNumber(value: 300)) }
        #expect(throws: DecodingError.self) { try decode(Bool.self, NSNumber(value: 1)) }
        #expect(throws: DecodingError.self) { try decode(Int.self, NSNumber(value: true)) }
    }

    @Test func dates() throws {
        let date = Date(timeIntervalSince1970: 1_700_000_000.25)
        let cases: [(FirebaseDataEncoder.DateEncodingStrategy, FirebaseDataDecoder.DateDecodingStrategy, Any)] = [
            (.deferredToDate, .deferredToDate, NSNumber(value: date.timeIntervalSinceReferenceDate)),
            (.secondsSince1970, .secondsSince1970, NSNumber(value: 1_700_000_000.25)),
            (.millisecondsSince1970, .millisecondsSince1970, NSNumber(value: 1_700_000_000_250.0)),
            (
                .custom { date, encoder in try "\(date.timeIntervalSince1970)".encode(to: encoder) },
                .custom { Date(timeIntervalSince1970: Double(try String(from: $0))!) }, "1700000000.25"
            ),
        ]
        for (encoding, decoding, expected) in cases {
            let value = try #require(try encode(date) { $0.dateEncodingStrategy = encoding }["v"] as? NSObject)
            #expect(value == expected as? NSObject)
            #expect(try decode(Date.self, value) { $0.dateDecodingStrategy = decoding } == date)
        }
        let whole = Date(timeIntervalSince1970: 1_700_000_000)
        let iso = try encode(whole) { $0.dateEncodingStrategy = .iso8601 }["v"]
        #expect(iso as? String == "2023-11-14T22:13:20Z")
        #expect(try decode(Date.self, iso as Any) { $0.dateDecodingStrategy = .iso8601 } == whole)
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "yyyy-MM-dd"
        #expect(try encode(whole) { $0.dateEncodingStrategy = .formatted(formatter) }["v"] as? String == "2023-11-14")
        #expect(
            try decode(Date.self, "2023-11-14") { $0.dateDecodingStrategy = .formatted(formatter) }
                == Date(timeIntervalSince1970: 1_699_920_000))
        #expect(throws: DecodingError.self) {
            try decode(Date.self, "soon") { $0.dateDecodingStrategy = .formatted(formatter) }
        }
    }

    @Test func data() throws {
        let data = Data([1, 2, 255])
        #expect(try encode(data)["v"] as? String == "AQL/")
        #expect(try decode(Data.self, "AQL/") == data)
        #expect(try encode(data) { $0.dataEncodingStrategy = .deferredToData }["v"] as? [Int] == [1, 2, 255])
        #expect(try decode(Data.self, [1, 2, 255]) { $0.dataDecodingStrategy = .deferredToData } == data)
        #expect(try encode(data) { $0.dataEncodingStrategy = .blob }["v"] as? Data == data)
        #expect(try decode(Data.self, data) { $0.dataDecodingStrategy = .blob } == data)
        #expect(try decode(Data.self, "x") { $0.dataDecodingStrategy = .custom { _ in data } } == data)
        #expect(throws: DecodingError.self) { try decode(Data.self, "*") }
    }

    @Test func floats() throws {
        #expect(throws: EncodingError.self) { try encode(Double.nan) }
        let encoded = try encode([Double.infinity, -.infinity, .nan]) {
            $0.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "+", negativeInfinity: "-", nan: "?")
        }
        #expect(encoded["v"] as? [String] == ["+", "-", "?"])
        let decoded = try decode([Double].self, ["+", "-", "?"]) {
            $0.nonConformingFloatDecodingStrategy = .convertFromString(
                positiveInfinity: "+", negativeInfinity: "-", nan: "?")
        }
        #expect(decoded[0] == .infinity && decoded[1] == -.infinity && decoded[2].isNaN)
    }

    @Test func keys() throws {
        struct Line: Codable, Equatable {
            var firstWord = 1
            var map = ["someKey": 2]
        }
        let encoder = Database.Encoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let snake = try encoder.encode(Line())
        #expect(snake as? NSDictionary == ["first_word": 1, "map": ["someKey": 2]])
        #expect(try decode(Line.self, snake) { $0.keyDecodingStrategy = .convertFromSnakeCase } == Line())
        encoder.keyEncodingStrategy = .custom { PlainKey(stringValue: "x-" + $0.last!.stringValue) }
        let custom = try encoder.encode(Line())
        #expect((custom as? [String: Any])?.keys.sorted() == ["x-firstWord", "x-map"])
        let decoded = try decode(Line.self, custom) {
            $0.keyDecodingStrategy = .custom { PlainKey(stringValue: String($0.last!.stringValue.dropFirst(2))) }
        }
        #expect(decoded == Line())
    }

    @Test func passthroughAndUserInfo() throws {
        enum Dates: StructureCodingPassthroughTypeResolver {
            static func isPassthroughType<T>(_ t: T) -> Bool { t is Date || t is Date.Type }
        }
        let date = Date(timeIntervalSince1970: 5)
        #expect(try encode(date) { $0.passthroughTypeResolver = Dates.self }["v"] as? Date == date)
        #expect(try decode(Date.self, date) { $0.passthroughTypeResolver = Dates.self } == date)
        #expect(throws: DecodingError.self) {
            try decode(Date.self, "x") { $0.passthroughTypeResolver = Dates.self }
        }
        struct Informed: Codable, Equatable {
            static let key = CodingUserInfoKey(rawValue: "info")!
            var string: String
            init(string: String) { self.string = string }
            init(from decoder: any Swift.Decoder) throws { string = decoder.userInfo[Self.key] as? String ?? "-" }
            func encode(to encoder: any Swift.Encoder) throws {
                try (encoder.userInfo[Self.key] as? String ?? "-").encode(to: encoder)
            }
        }
        #expect(try encode(Informed(string: "")) { $0.userInfo[Informed.key] = "i" }["v"] as? String == "i")
        #expect(try decode(Informed.self, 1) { $0.userInfo[Informed.key] = "i" }.string == "i")
    }

    @Test func serverTimestamps() throws {
        struct Line: Codable, Equatable, Hashable { @ServerTimestamp var at: Date? }
        let open = try Database.Encoder().encode(Line(at: nil))
        #expect(open as? NSDictionary == ["at": [".sv": "timestamp"]])
        let date = Date(timeIntervalSince1970: 1_700_000_000.25)
        let set = try Database.Encoder().encode(Line(at: date))
        #expect(set as? NSDictionary == ["at": 1_700_000_000_250])
        #expect(try Database.Decoder().decode(Line.self, from: set) == Line(at: date))
        #expect(try Database.Decoder().decode(Line.self, from: ["at": NSNull()]) == Line(at: nil))
        let node = try ValueReader(call: "").node(open, at: "/")
        #expect(node.child("at").value == .deferred(.timestamp))
    }
}
