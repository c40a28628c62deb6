import HearthModel
import Testing

@Suite struct FieldTransformTests {
    struct Case: Sendable {
        var operation: FieldTransform.Operation
        var stored: Value?
        var value: Value
        var result: Value?

        init(_ operation: FieldTransform.Operation, _ stored: Value?, _ value: Value, result: Value? = nil) {
            self.operation = operation
            self.stored = stored
            self.value = value
            self.result = result
        }
    }

    static let time = Timestamp(microseconds: -1_234_567)
    static let nan = Value.double(.nan)

    static let cases: [Case] = [
        // Milliseconds, rounded towards the past also before 1970.
        Case(.requestTime, nil, .timestamp(Timestamp(microseconds: -1_235_000))),
        Case(.requestTime, .string("x"), .timestamp(Timestamp(microseconds: -1_235_000))),

        Case(.increment(.integer(2)), nil, .integer(2)),
        Case(.increment(.integer(2)), .string("x"), .integer(2)),
        Case(.increment(.double(2)), .null, .double(2)),
        Case(.increment(.integer(2)), .integer(3), .integer(5)),
        Case(.increment(.integer(2)), .integer(.max), .integer(.max)),
        Case(.increment(.integer(-2)), .integer(.min + 1), .integer(.min)),
        Case(.increment(.double(0.5)), .integer(1), .double(1.5)),
        Case(.increment(.integer(1)), .double(0.5), .double(1.5)),
        Case(.increment(.double(-.infinity)), .double(.infinity), nan),
        Case(.increment(.double(-.nan)), .double(1), nan),
        Case(.increment(.double(-0.0)), .double(-0.0), .double(-0.0)),
        Case(.increment(.integer(0)), .double(-0.0), .double(0.0)),

        Case(.maximum(.integer(2)), nil, .integer(2)),
        Case(.maximum(.integer(2)), .boolean(true), .integer(2)),
        Case(.maximum(.integer(2)), .integer(3), .integer(3)),
        Case(.maximum(.double(4)), .integer(3), .double(4)),
        Case(.maximum(.double(3)), .integer(3), .integer(3)),
        Case(.maximum(.integer(3)), .double(3), .double(3)),
        Case(.maximum(.double(0.0)), .double(-0.0), .double(-0.0)),
        Case(.maximum(nan), .integer(3), nan),
        Case(.maximum(.integer(3)), nan, nan),

        Case(.minimum(.integer(2)), nil, .integer(2)),
        Case(.minimum(.integer(2)), .timestamp(time), .integer(2)),
        Case(.minimum(.integer(2)), .integer(3), .integer(2)),
        Case(.minimum(.double(3)), .integer(3), .integer(3)),
        Case(.minimum(.integer(5)), .double(3), .double(3)),
        Case(.minimum(nan), .integer(3), nan),
        Case(.minimum(.integer(3)), nan, nan),
        Case(.minimum(.integer(9_007_199_254_740_993)), .double(9_007_199_254_740_992), .double(9_007_199_254_740_992)),

        Case(.appendMissingElements([.integer(1)]), nil, .array([.integer(1)]), result: .null),
        Case(.appendMissingElements([]), .string("x"), .array([]), result: .null),
        Case(
            .appendMissingElements([.double(1), .integer(2), .integer(2)]), .array([.integer(1), .integer(1)]),
            .array([.integer(1), .integer(1), .integer(2)]), result: .null),
        Case(.appendMissingElements([nan, .null]), .array([nan]), .array([nan, .null]), result: .null),
        Case(
            .appendMissingElements([.map(map(("a", .double(1))))]), .array([.map(map(("a", .integer(1))))]),
            .array([.map(map(("a", .integer(1))))]), result: .null),

        Case(.removeAllFromArray([.integer(1)]), nil, .array([]), result: .null),
        Case(.removeAllFromArray([.integer(1)]), .integer(1), .array([]), result: .null),
        Case(
            .removeAllFromArray([.double(1), nan]), .array([.integer(1), nan, .integer(2), .integer(1)]),
            .array([.integer(2)]), result: .null),
    ]

    @Test(arguments: cases.indices) func applies(_ index: Int) {
        let one = Self.cases[index]
        let (value, result) = FieldTransform(path: FieldPath("f"), operation: one.operation)
            .apply(to: one.stored, requestTime: Self.time)
        #expect(value == one.value)
        #expect(result == one.result ?? one.value)
    }
}
