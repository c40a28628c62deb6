import HearthModel
import Testing

/// Checks that `body` throws `INVALID_ARGUMENT` with exactly this message.
func expectInvalid(
    _ message: String, _ body: () throws(Status) -> Void, sourceLocation: SourceLocation = #_sourceLocation
) {
    expectStatus(.invalidArgument(message), body, sourceLocation: sourceLocation)
}

func expectStatus(
    _ status: Status, _ body: () throws(Status) -> Void, sourceLocation: SourceLocation = #_sourceLocation
) {
    do throws(Status) {
        try body()
        Issue.record("nothing was thrown instead of \(status)", sourceLocation: sourceLocation)
    } catch {
        #expect(error == status, sourceLocation: sourceLocation)
    }
}

/// A map from pairs, in any order.
func map(_ fields: (String, Value)...) -> MapValue {
    MapValue(fields.map { MapValue.Field(name: $0.0, value: $0.1) })
}
