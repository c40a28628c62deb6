/// Looks into an `Optional` that was put into an `Any`.
package protocol OptionalValue {
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    package var wrappedValue: Any? { self }
}
