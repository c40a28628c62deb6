import HearthModel
import Testing

@Suite struct ValueValidationTests {
    /// A value inside of `levels` maps.
    static func nested(_ levels: Int, in value: Value = .integer(1)) -> Value {
        (0..<levels).reduce(value) { inner, _ in .map(map(("k", inner))) }
    }

    static let reference = "projects/p/databases/d/documents/"

    static let refused: [(value: Value, message: String)] = [
        (nested(21), "Property a contains an invalid nested entity."),
        (nested(20, in: .array([])), "Property a contains an invalid nested entity."),
        (.array([.array([])]), "Cannot convert an array value in an array value."),
        (.array([.map(map(("x", .array([.array([.null])]))))]), "Cannot convert an array value in an array value."),
        (.array([.vector([1])]), "Cannot convert a vector value in an array value."),
        (.vector([]), "Cannot have a zero length vector."),
        (.vector(Array(repeating: 0, count: 2049)), "Vectors must be at most 2048 dimensions."),
        (.map(map(("__type__", .string("__vector__")))), "Vector map is missing key 'value'."),
        (
            .map(map(("__type__", .string("__vector__")), ("value", .array([.double(1)])), ("x", .null))),
            "Vector Value map has extraneous entries."
        ),
        (
            .map(map(("__type__", .string("__vector__")), ("value", .array([])))), "Cannot have a zero length vector."
        ),
        (
            .map(map(("__type__", .string("__vector__")), ("value", .array([.integer(1)])))),
            "Vector must only contain values of type 'double'"
        ),
        (.map(map(("__type__", .string("x")))), "Property a contains an invalid nested entity."),
        (.map(map(("__x__", .null))), "field name '__x__' is reserved."),
        (.map(map(("", .null))), "The property.name is the empty string."),
        (.map(map((String(repeating: "k", count: 1501), .null))), "Property a contains an invalid nested entity."),
        (
            .map(map((String(repeating: "k", count: 800), .map(map((String(repeating: "k", count: 700), .null)))))),
            "Property a contains an invalid nested entity."
        ),
        (
            .geoPoint(GeoPoint(latitude: 91, longitude: 0)),
            "Geo point latitude '91.0' outside permitted range -90.0 to 90.0."
        ),
        (
            .geoPoint(GeoPoint(latitude: 0, longitude: -180.5)),
            "Geo point longitude '-180.5' outside permitted range -180.0 to 180.0."
        ),
        (
            .geoPoint(GeoPoint(latitude: .nan, longitude: 0)),
            "Geo point latitude 'nan' outside permitted range -90.0 to 90.0."
        ),
        (.reference("x"), "Document name \"x\" lacks \"projects\" at index 0."),
        (.reference(reference + "c"), "Resource name \"\(reference)c\" lacks \"/\" at index 34."),
        (
            .string(String(repeating: "x", count: 1_048_488)),
            "The value of property \"a\" is longer than 1048487 bytes."
        ),
        (.bytes(Array(repeating: 0, count: 1_048_488)), "The value of property \"a\" is longer than 1048487 bytes."),
        (
            .array([.string(String(repeating: "x", count: 1_048_488))]),
            "The value of property \"a\" is longer than 1048487 bytes."
        ),
        (
            .array([.map(map(("k", .bytes(Array(repeating: 0, count: 1_048_488)))))]),
            "Property a contains an invalid nested entity."
        ),
        (.vector([1, .nan]), "Vector cannot contain NaN values."),
        (.map(map(("x", .vector([.nan])))), "Property a contains an invalid nested entity."),
        (.map(map(("x", .map(map(("__type__", .integer(1))))))), "Field __type__ is not a string."),
    ]

    @Test(arguments: refused.indices) func refuses(_ index: Int) {
        let (value, message) = Self.refused[index]
        expectInvalid(message) { () throws(Status) in try ValueValidation.validate(map(("a", value))) }
    }

    static let accepted: [Value] = [
        nested(20), nested(19, in: .array([.null])), .array([.map(map(("x", .array([]))))]),
        .vector(Array(repeating: 0, count: 2048)), .map(map(("____", .null))), .map(map(("__x_", .null))),
        .map(map((String(repeating: "k", count: 1499), .null))),
        .geoPoint(GeoPoint(latitude: -90, longitude: 180)), .reference(reference + "c/d"),
        .string(String(repeating: "x", count: 1_048_487)), .bytes(Array(repeating: 0, count: 1_048_487)),
        .map(map(("m", .vector([1])))), .double(.nan), .timestamp(Timestamp(microseconds: 0)),
    ]

    @Test(arguments: accepted.indices) func accepts(_ index: Int) throws {
        try ValueValidation.validate(map(("a", Self.accepted[index])))
    }

    static let names: [(name: String, message: String)] = [
        ("", "The property.name is the empty string."),
        (String(repeating: "x", count: 1501), "The property.name is longer than 1500 bytes."),
        ("__id__", "field name __id__ is reserved"),
        ("__\u{301}__", "field name __\u{301}__ is reserved"),
    ]

    @Test(arguments: names) func refusesFieldNames(_ name: String, _ message: String) {
        expectInvalid(message) { () throws(Status) in try ValueValidation.validate(map((name, .null))) }
    }

    @Test func acceptsUnusualFieldNames() throws {
        for name in ["a.b", "`", " ", "\u{0}", "____", "__", String(repeating: "x", count: 1500)] {
            try ValueValidation.validate(map((name, .null)))
        }
    }
}
