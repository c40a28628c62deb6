import HearthTestSupport
import Testing

@testable import HearthModel

/// `arrayUnion` and `arrayRemove` of many elements give the same result as comparing all pairs.
@Suite struct ElementSetTests {
    static let special: [Value] = [
        .null, .boolean(true), .boolean(false), .integer(0), .double(0), .double(-0.0), .integer(3), .double(3),
        .double(3.5), .double(.nan), .double(Double(bitPattern: 0x7FF8_0000_0000_0001)), .integer(.max),
        .double(0x1p63), .integer(.min), .double(-0x1p63), .double(.infinity), .integer(1 << 53),
        .double(0x1p53), .integer((1 << 53) + 1), .timestamp(Timestamp(microseconds: 3)), .string("3"),
        .string("e\u{301}"),
        .string("\u{e9}"), .bytes([3]), .reference("projects/p/databases/d/documents/c/__id7__"),
        .reference("projects/p/databases/d/documents/c/7"), .geoPoint(GeoPoint(latitude: 0, longitude: 1)),
        .geoPoint(GeoPoint(latitude: -0.0, longitude: 1)), .array([.integer(1)]), .array([.double(1)]),
        .array([.integer(1), .null]), .vector([1, 2]), .vector([1]),
        .map(MapValue([.init(name: "a", value: .integer(1))])),
        .map(MapValue([.init(name: "a", value: .double(1))])), .map(MapValue()), .array([]),
    ]

    @Test func equivalentValuesHaveEqualHashes() {
        for left in Self.special {
            for right in Self.special {
                let (one, other) = (EquivalentValue(left), EquivalentValue(right))
                #expect((one == other) == ValueOrder.equivalent(left, right))
                if one == other { #expect(one.hashValue == other.hashValue, "\(left) and \(right)") }
            }
        }
    }

    @Test func manyElementsAreHandledLikeFew() {
        let seed = UInt64.random(in: 0 ... .max)
        var state = seed
        func next(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(truncatingIfNeeded: state >> 33) % bound
        }
        for _ in 0..<200 {
            let array = (0..<next(40)).map { _ in Self.special[next(Self.special.count)] }
            let elements = (0..<(9 + next(40))).map { _ in Self.special[next(Self.special.count)] }
            var union = array
            for element in elements where !union.contains(where: { ValueOrder.equivalent($0, element) }) {
                union.append(element)
            }
            #expect(ElementSet.appending(elements, to: array) == union, "seed \(seed)")
            let kept = array.filter { element in !elements.contains { ValueOrder.equivalent($0, element) } }
            #expect(ElementSet.removing(elements, from: array) == kept, "seed \(seed)")
        }
    }

    @Test func elementsAreFoundWithoutAScanForEach() {
        let numbers = (0..<100_000).map { Value.integer(Int64($0)) }
        let others = (0..<100_000).map { Value.double(Double($0 + 50_000)) }
        let seconds = threadSeconds {
            #expect(ElementSet.appending(others, to: numbers).count == 150_000)
            #expect(ElementSet.removing(others, from: numbers).count == 50_000)
        }
        // Quadratic time would take hours.
        #expect(seconds < 60)
    }
}
