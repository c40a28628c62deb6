/// A deferred value in a write, which the server computes. Source: `ServerValue` of the SDKs.
package enum ServerValue: Sendable, Hashable {
    /// Milliseconds since 1970; one instant for all of a request.
    case timestamp
    /// Adds to the number at the location; the sum of integers that fit is an integer.
    case increment(Int64)
    case incrementDouble(Double)
}
