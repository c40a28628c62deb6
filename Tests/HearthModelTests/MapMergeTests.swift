import HearthModel
import HearthTestSupport
import Testing

@Suite struct MapMergeTests {
    struct Case: Sendable {
        var stored: MapValue
        var input: MapValue
        var mask: [String]
        var result: MapValue
    }

    static let one = Value.integer(1)
    static let two = Value.integer(2)

    static let cases: [Case] = [
        // An empty mask changes nothing; input outside of the mask is ignored.
        Case(stored: map(("a", one)), input: map(("a", two), ("b", two)), mask: [], result: map(("a", one))),
        Case(
            stored: map(("a", one)), input: map(("a", two), ("b", two)), mask: ["b"],
            result: map(("a", one), ("b", two))),
        // A path without a value is deleted; deleting the last key of a map leaves an empty map.
        Case(stored: map(("a", one), ("b", two)), input: map(), mask: ["a", "c"], result: map(("b", two))),
        Case(stored: map(("m", .map(map(("x", one))))), input: map(), mask: ["m.x"], result: map(("m", .map(map())))),
        // A whole subtree replaces the stored one.
        Case(
            stored: map(("m", .map(map(("x", one), ("y", one))))), input: map(("m", .map(map(("x", two))))),
            mask: ["m"],
            result: map(("m", .map(map(("x", two)))))),
        Case(
            stored: map(("m", .map(map(("x", one), ("y", one))))), input: map(("m", .map(map(("x", two))))),
            mask: ["m.x"], result: map(("m", .map(map(("x", two), ("y", one)))))),
        // A value that is not a map is replaced by a deeper value, but not by a deletion.
        Case(
            stored: map(("a", one)), input: map(("a", .map(map(("b", two))))), mask: ["a.b"],
            result: map(("a", .map(map(("b", two)))))),
        Case(stored: map(("a", one)), input: map(), mask: ["a.b", "a.c.d"], result: map(("a", one))),
        Case(stored: map(), input: map(), mask: ["a.b"], result: map()),
        Case(stored: map(), input: map(("a", .map(map()))), mask: ["a.b"], result: map()),
        Case(
            stored: map(("a", one)), input: map(("a", .map(map(("b", two))))), mask: ["a.b", "a.c"],
            result: map(("a", .map(map(("b", two)))))),
        Case(stored: map(("v", .vector([1]))), input: map(), mask: ["v.value"], result: map(("v", .vector([1])))),
        // Of overlapping paths the shorter one counts, in either order; duplicates have no effect.
        Case(
            stored: map(("a", .map(map(("b", one), ("c", one))))), input: map(("a", .map(map(("b", two))))),
            mask: ["a.b", "a", "a.c", "a"], result: map(("a", .map(map(("b", two)))))),
        Case(stored: map(("a", .map(map(("b", one))))), input: map(), mask: ["a.b.c", "a"], result: map()),
        // A dot in a key does not separate segments.
        Case(
            stored: map(("a.b", one), ("a", .map(map(("b", one))))), input: map(("a.b", two)), mask: ["`a.b`"],
            result: map(("a.b", two), ("a", .map(map(("b", one)))))),
    ]

    @Test(arguments: cases.indices) func merges(_ index: Int) throws {
        let one = Self.cases[index]
        let mask = try one.mask.map { try FieldPath(parsing: $0) }
        var value = one.stored
        value.merge(one.input, mask: mask)
        #expect(value == one.result)

        // The same in a map that is so large that paths are set one by one.
        let others = (0..<200).map { MapValue.Field(name: "other\($0)", value: .null) }
        value = MapValue(one.stored.fields + others)
        value.merge(one.input, mask: mask)
        #expect(value == MapValue(one.result.fields + others))
    }

    /// The cost of a mask of a whole document must not be quadratic.
    @Test func staysFastForLongMasks() {
        let count = 60_000
        func fields(_ value: Value, _ wanted: (Int) -> Bool) -> MapValue {
            MapValue((0..<count).filter(wanted).map { MapValue.Field(name: "f\(1_000_000 + $0)", value: value) })
        }
        var stored = map(("m", .map(fields(Self.one) { $0.isMultiple(of: 2) })))
        let input = map(("m", .map(fields(Self.two) { !$0.isMultiple(of: 2) })))
        let mask = (0..<count).reversed().filter { !$0.isMultiple(of: 2) }
            .map { FieldPath(segments: ["m", "f\(1_000_000 + $0)"]) }
        let seconds = threadSeconds { stored.merge(input, mask: mask) }
        guard case .map(let inner)? = stored["m"] else { return #expect(Bool(false)) }
        #expect(inner.count == count)
        #expect(seconds < 60)
    }
}
