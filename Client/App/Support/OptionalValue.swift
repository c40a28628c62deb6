/// Unwraps an `Optional` inside an `Any`.
package protocol OptionalValue {
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    package var wrappedValue: Any? { self }
}
