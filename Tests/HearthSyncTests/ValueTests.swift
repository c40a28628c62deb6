import Foundation
import HearthModel
import HearthWire
import Testing

@testable import HearthSync

@Suite("Values and documents")
struct ValueTests {
    private static func groups() throws -> [[Value]] {
        let file = try #require(try Conformance.json("value-ordering", "groups.json") as? [String: Any])
        return try #require(file["groups"] as? [[String: Any]]).map { group in
            try #require(group["values"] as? [Any]).map { json in
                let fields = try JSONSerialization.data(withJSONObject: ["fields": ["v": json]])
                let document = try DocumentMessage(json: [UInt8](fields))
                return try #require(document.fields["v"])
            }
        }
    }

    @Test("Every pair of the golden values compares as expected")
    func golden() throws {
        let groups = try Self.groups()
        #expect(groups.count == 94)
        for (left, leftValues) in groups.enumerated() {
            for (right, rightValues) in groups.enumerated() {
                for x in leftValues {
                    for y in rightValues {
                        let order = ClientValueOrder.compare(x, y).signum()
                        #expect(order == (left - right).signum(), "\(x) and \(y)")
                    }
                }
            }
        }
    }

    @Test("Pending server timestamps sort between timestamps and strings, by their local write time")
    func pendingTimestamps() {
        func pending(_ seconds: Int64, _ previous: Value? = nil) -> Value {
            PendingServerTimestamp(localWriteTime: .seconds(seconds), previousValue: previous).value
        }
        let ordered: [Value] = [
            .integer(5), .timestamp(.seconds(1 << 33)), pending(1), pending(2, .string("zz")), .string(""),
            .map(MapValue()),
        ]
        for (left, x) in ordered.enumerated() {
            for (right, y) in ordered.enumerated() {
                #expect(ClientValueOrder.compare(x, y).signum() == (left - right).signum())
                // Also inside maps and arrays.
                let (outerX, outerY) = (Value.array([.map(["a": x])]), Value.array([.map(["a": y])]))
                #expect(ClientValueOrder.compare(outerX, outerY).signum() == (left - right).signum())
            }
        }
        #expect(ClientValueOrder.compare(pending(1), pending(1, .null)) == 0)
        #expect(!ClientValueOrder.areComparable(pending(1), .timestamp(.seconds(1))))
    }

    @Test("Pending server timestamps never nest")
    func nesting() throws {
        let first = PendingServerTimestamp(localWriteTime: .seconds(1), previousValue: .integer(7))
        let second = PendingServerTimestamp(localWriteTime: .seconds(2), previousValue: first.value)
        #expect(second.previousValue == .integer(7))
        let read = try #require(PendingServerTimestamp(second.value))
        #expect(read.localWriteTime == .seconds(2))
        #expect(read.previousValue == .integer(7))
        #expect(PendingServerTimestamp(.map(["__type__": .string("server_timestamp")])) == nil)
        #expect(!PendingServerTimestamp.isPending(.map(["__type__": .string("other"), "a": .null])))
    }

    @Test("Equality is strict: no number equals one of another type, all NaN are one")
    func strictEquality() {
        #expect(!StrictEquality.equal(.integer(1), .double(1)))
        #expect(!StrictEquality.equal(.double(0), .double(-0.0)))
        #expect(StrictEquality.equal(.double(.nan), .double(Double(bitPattern: 0x7ff8_0000_0000_0001))))
        #expect(StrictEquality.equal(.array([.map(["a": .double(.nan)])]), .array([.map(["a": .double(-.nan)])])))
        #expect(!StrictEquality.equal(.array([.integer(1)]), .array([.integer(1), .integer(2)])))
        let point = GeoPoint(latitude: 0, longitude: 0)
        #expect(!StrictEquality.equal(.geoPoint(point), .geoPoint(GeoPoint(latitude: -0.0, longitude: 0))))
        var document = ClientDocument.found("c/a", 1, ["n": .integer(1)])
        let other = document
        #expect(document == other)
        document.readTime = .seconds(9)
        #expect(document == other, "the read time is not part of equality")
        document.fields = ["n": .double(1)]
        #expect(document != other)
    }

    @Test("Keys order by segments, numeric ids first")
    func keys() {
        let ordered = ["c/__id-7__", "c/__id3__", "c/__id20__", "c/B", "c/a", "c/a/d/x", "c/aa", "d/a"]
        for (left, x) in ordered.enumerated() {
            for (right, y) in ordered.enumerated() {
                let order = ResourcePath.compare(ResourcePath(x), ResourcePath(y)).signum()
                #expect(order == (left - right).signum(), "\(x) and \(y)")
            }
        }
    }
}

extension MapValue: ExpressibleByDictionaryLiteral {
    @usableFromInline package init(dictionaryLiteral elements: (String, Value)...) {
        self.init(elements.map { Field(name: $0.0, value: $0.1) })
    }
}
