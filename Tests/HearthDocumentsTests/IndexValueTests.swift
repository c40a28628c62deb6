import Glibc
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthDocuments

/// The byte order of encoded values against the order of values.
@Suite struct IndexValueTests {
    static let goldens: [(value: Value, hex: String)] = [
        (.null, "05"), (.boolean(false), "0A00"), (.boolean(true), "0A01"), (.double(.nan), "0D"),
        (.integer(1), "0FBFF0000000000000"), (.double(1), "0FBFF0000000000000"), (.integer(-1), "0F400FFFFFFFFFFFFF"),
        (.integer(0), "0F8000000000000000"), (.double(-0.0), "0F8000000000000000"),
        (.integer(9_007_199_254_740_993), "0FC3400000000000000001"),
        (.integer(.max), "0FC3DFFFFFFFFFFFFF03FF"), (.double(0x1p63), "0FC3E00000000000000000"),
        (.integer(.min), "0F3C1FFFFFFFFFFFFF0000"), (.double(.infinity), "0FFFF0000000000000"),
        (.timestamp(Timestamp(microseconds: 0)), "148000000000000000"),
        (.timestamp(Timestamp(microseconds: -1)), "147FFFFFFFFFFFFFFF"),
        (.string("a"), "19610001"), (.string(""), "190001"), (.string("\u{0}"), "1900FF0001"),
        (.bytes([0xFF]), "1EFF0001"),
        (.reference("projects/p/databases/d/documents/c/__id1__"), "2520700001206400012063000110800000000000000102"),
        (.geoPoint(GeoPoint(latitude: 1, longitude: -1)), "2DBFF0000000000000400FFFFFFFFFFFFF"),
        (.array([]), "3202"), (.array([.null]), "320502"), (.vector([1]), "35000000010FBFF0000000000000"),
        (.map(MapValue()), "3702"), (.map(map(("a", .null))), "37196100010502"),
    ]

    @Test(arguments: goldens.indices) func hasTheDocumentedForm(_ index: Int) {
        let (value, hex) = Self.goldens[index]
        #expect(hexString(IndexValue.encode(value)) == hex)
    }

    private func hexString(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789ABCDEF")
        return bytes.reduce(into: "") { string, byte in
            string.append(digits[Int(byte >> 4)])
            string.append(digits[Int(byte & 15)])
        }
    }

    /// Every pair of the published groups, in both directions.
    @Test func followsThePublishedGroups() throws {
        let file = try OutsideVectors.file("value-ordering/groups.json")
        let groups = try OrderGroups(json: file).groups
        #expect(groups.count > 90)
        for (left, leftGroup) in groups.enumerated() {
            for (right, rightGroup) in groups.enumerated() {
                for (x, y) in product(leftGroup.values.map(withEmptyVector), rightGroup.values.map(withEmptyVector)) {
                    expectOrder(x, y, (left - right).signum())
                }
            }
        }
    }

    /// No document may contain an empty vector, so the codecs keep its map, and validation rejects it.
    private func withEmptyVector(_ value: Value) -> Value {
        value == .map(map(("__type__", .string("__vector__")), ("value", .array([])))) ? .vector([]) : value
    }

    private func product(_ xs: [Value], _ ys: [Value]) -> [(Value, Value)] { xs.flatMap { x in ys.map { (x, $0) } } }

    private func expectOrder(_ x: Value, _ y: Value, _ expected: Int, sourceLocation: SourceLocation = #_sourceLocation)
    {
        let left = IndexValue.encode(x)
        let right = IndexValue.encode(y)
        let orders = [
            ValueOrder.compare(x, y).signum(), UTF8Order.compare(left, right).signum(),
            -UTF8Order.compare(left.map(~), right.map(~)).signum(),
        ]
        if orders != [expected, expected, expected] {
            Issue.record("\(x) and \(y): \(orders) instead of \(expected)", sourceLocation: sourceLocation)
        }
    }

    @Test func followsTheOrderOfRandomValues() {
        var maker = ValueMaker(SeededGenerator(seed: TestRun.seed()))
        let seed = maker.random.seed
        for _ in 0..<(30_000 * TestRun.effort) {
            let x = maker.value(depth: 3)
            let y = maker.random.chance(10) ? x : maker.value(depth: 3)
            let expected = ValueOrder.compare(x, y).signum()
            let left = IndexValue.encode(x)
            let right = IndexValue.encode(y)
            #expect(
                UTF8Order.compare(left, right).signum() == expected, "seed \(seed): \(x) and \(y)")
            if expected != 0, left.starts(with: right) || right.starts(with: left) {
                Issue.record("seed \(seed): one is a prefix of the other: \(x) and \(y)")
            }
            let isOrdered = cutOrderHolds(left, right, x, y)
            #expect(isOrdered, "seed \(seed): cut, \(x) and \(y)")
        }
    }

    /// Cut forms are in the same order or equal, and never one a proper prefix of the other.
    private func cutOrderHolds(_ left: [UInt8], _ right: [UInt8], _ x: Value, _ y: Value) -> Bool {
        var cutLeft: [UInt8] = []
        var cutRight: [UInt8] = []
        IndexValue.appendCut(x, to: &cutLeft)
        IndexValue.appendCut(y, to: &cutRight)
        guard left.starts(with: cutLeft), right.starts(with: cutRight) else { return false }
        if cutLeft == cutRight { return left == right || (cutLeft.count < left.count && cutRight.count < right.count) }
        return UTF8Order.compare(cutLeft, cutRight).signum() == UTF8Order.compare(left, right).signum()
            && !cutLeft.starts(with: cutRight) && !cutRight.starts(with: cutLeft)
    }

    /// int64 against double, near every power of two where doubles get coarse.
    @Test func isExactWhereDoublesAreCoarse() {
        var integers: Set<Int64> = [.min, .max]
        for exponent in 50..<63 {
            let power = Int64(1) << Int64(exponent)
            for offset in [Int64(-1025), -1024, -513, -2, -1, 0, 1, 2, 3, 511, 512, 513, 1023, 1024, 1025] {
                integers.insert(power &+ offset)
                integers.insert(-power &+ offset)
            }
        }
        for offset in Int64(0)..<2050 { integers.formUnion([Int64.max - offset, Int64.min + offset]) }
        let sorted = integers.sorted()
        for (x, y) in zip(sorted, sorted.dropFirst()) {
            expectOrder(.integer(x), .integer(y), -1)
            for double in [Double(x), Double(x).nextUp, Double(x).nextDown] { expectExact(x, double) }
        }
    }

    private func expectExact(_ integer: Int64, _ double: Double) {
        // Sixteen times a double of this size is whole, so 128 bits compare exactly.
        let difference = Int128(integer) * 16 - Int128(double * 16)
        expectOrder(.integer(integer), .double(double), difference < 0 ? -1 : difference > 0 ? 1 : 0)
    }

    // MARK: Limits of the encoding

    @Test func findsTheEndsOfValuesInKeys() {
        var maker = ValueMaker(SeededGenerator(seed: TestRun.seed()))
        let seed = maker.random.seed
        for _ in 0..<(5000 * TestRun.effort) {
            let value = maker.value(depth: 3)
            let whole = IndexValue.encode(value)
            var cut: [UInt8] = []
            IndexValue.appendCut(value, to: &cut)
            let start = maker.random.below(4)
            let complemented = maker.random.chance(50)
            let head = [UInt8](repeating: 0x05, count: start)
            let tail = (0..<maker.random.below(6)).map { _ in UInt8(truncatingIfNeeded: maker.random.next()) }
            let key = head + (complemented ? cut.map(~) : cut) + tail
            let end = IndexValue.end(of: key, from: start, complemented: complemented)
            #expect(end?.end == start + cut.count, "seed \(seed): \(value)")
            #expect(end?.isCut == (cut.count < whole.count), "seed \(seed): \(value)")
        }
    }

    @Test func readsGarbageWithoutCrashing() {
        var random = SeededGenerator(seed: TestRun.seed())
        let tags: [UInt8] = [
            0x05, 0x0A, 0x0D, 0x0F, 0x14, 0x19, 0x1E, 0x25, 0x2D, 0x32, 0x35, 0x37, 0x02, 0x10, 0x20, 0, 1, 0xFF,
        ]
        for _ in 0..<(15_000 * TestRun.effort) {
            let bytes = (0..<random.below(300)).map { _ in
                random.chance(70) ? random.pick(tags) : UInt8(truncatingIfNeeded: random.next())
            }
            let start = random.below(bytes.count + 2)
            for complemented in [false, true] {
                guard let end = IndexValue.end(of: bytes, from: start, complemented: complemented) else { continue }
                #expect(end.end > start && end.end <= bytes.count)
            }
            _ = IndexValue.decodeNumber(bytes, from: start)
            _ = DocumentKey.decode(bytes)
            _ = DocumentKey.toPathKey(bytes)
            _ = DocumentKey.fromPathKey(bytes)
            _ = DocumentKey.collectionPrefixEnd(bytes)
        }
        // Nesting is bounded, so that no key can exhaust the stack.
        #expect(
            IndexValue.end(of: [UInt8](repeating: 0x32, count: 100_000), from: 0, complemented: false)?.isCut != false)
    }

    @Test func decodesNumbers() {
        for integer in ValueMaker.integers {
            let number = IndexValue.decodeNumber(IndexValue.encode(.integer(integer)), from: 0)
            #expect(number.map { Int128($0.double) + Int128($0.rest) } == Int128(integer))
        }
        for double in ValueMaker.doubles where !double.isNaN {
            #expect(IndexValue.decodeNumber(IndexValue.encode(.double(double)), from: 0)?.double == double)
        }
        #expect(IndexValue.decodeNumber(IndexValue.encode(.double(.nan)), from: 0)?.double.isNaN == true)
        #expect(IndexValue.decodeNumber(IndexValue.encode(.string("a")), from: 0) == nil)
    }
}

/// The external vectors of `Tests/Vectors`.
enum OutsideVectors {
    static func file(_ name: String) throws -> [UInt8] {
        let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
        let path = "\(tests)/Vectors/\(name)"
        let file = try #require(fopen(path, "rb"), "\(path) is missing")
        defer { fclose(file) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            if count == 0 { return content }
            content += buffer[..<count]
        }
    }
}

/// The file of value groups.
private struct OrderGroups: WireMessage {
    struct Group: WireMessage {
        var note = ""
        var values: [Value] = []

        static let typeName = "OrderGroups.Group"

        mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "note", &note)
            try visitor.values(2, "values", &values)
        }
    }

    var about = ""
    var groups: [Group] = []

    static let typeName = "OrderGroups"

    mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "about", &about)
        try visitor.messages(2, "groups", &groups)
    }
}
