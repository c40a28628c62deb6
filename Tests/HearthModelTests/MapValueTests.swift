import HearthModel
import HearthTestSupport
import Testing

@Suite struct MapValueTests {
    @Test func sortsByBytesAndKeepsTheLastOfEqualNames() {
        let value = map(
            ("é", .integer(1)), ("z", .integer(2)), ("e\u{301}", .integer(3)), ("z", .integer(4)), ("", .null))
        #expect(value.fields.map { Array($0.name.utf8) } == ["", "e\u{301}", "z", "\u{E9}"].map { Array($0.utf8) })
        #expect(value["z"] == .integer(4))
        #expect(value["\u{E9}"] == .integer(1))
        #expect(value["e\u{301}"] == .integer(3))
        #expect(value["y"] == nil)
    }

    @Test func setsAndRemovesPaths() {
        var value = map(("a", .integer(1)), ("m", .map(map(("x", .integer(2))))))
        value.set(FieldPath(segments: ["m", "y", "z"]), .integer(3))
        value.set(FieldPath(segments: ["a", "b"]), .integer(4))
        #expect(
            value
                == map(
                    ("a", .map(map(("b", .integer(4))))),
                    ("m", .map(map(("x", .integer(2)), ("y", .map(map(("z", .integer(3))))))))))
        #expect(value[path: FieldPath(segments: ["m", "y", "z"])] == .integer(3))
        #expect(value[path: FieldPath(segments: ["m", "x", "z"])] == nil)

        value.remove(FieldPath(segments: ["m", "y", "z"]))
        value.remove(FieldPath(segments: ["m", "x", "z"]))
        value.remove(FieldPath(segments: ["none", "x"]))
        value.remove(FieldPath("a"))
        #expect(value == map(("m", .map(map(("x", .integer(2)), ("y", .map(MapValue())))))))
    }

    /// The cost of a map of a whole document must not be quadratic, whatever the order of names.
    @Test func staysFastForManyFields() {
        let count = 100_000
        let backwards = (0..<count).reversed().map {
            MapValue.Field(name: "f\(1_000_000 + $0)", value: .integer(Int64($0)))
        }
        let seconds = threadSeconds {
            var value = MapValue(backwards)
            #expect(value.count == count)
            var outer = map(("m", .map(value)))
            for index in stride(from: 0, to: count, by: 10) {
                outer.set(FieldPath(segments: ["m", "f\(1_000_000 + index)"]), .null)
            }
            value = MapValue()
            #expect(outer[path: FieldPath(segments: ["m", "f1000010"])] == .null)
        }
        #expect(seconds < 60)
    }

    @Test func identityDistinguishesBits() {
        #expect(Value.integer(3) != .double(3))
        #expect(Value.double(0) != .double(-0.0))
        #expect(Value.double(.nan) == .double(.nan))
        #expect(Value.string("\u{E9}") != .string("e\u{301}"))
        #expect(ValueOrder.equivalent(.integer(3), .double(3)))
        #expect(ValueOrder.equivalent(.double(0), .double(-0.0)))
        #expect(!ValueOrder.equivalent(.string("\u{E9}"), .string("e\u{301}")))
    }
}
