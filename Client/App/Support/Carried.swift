internal import Foundation

/// Carries a value that is not `Sendable` to its only user: the user's closures, which the API accepts without
/// `@Sendable` as Apple's API does, and which run on the user's queue.
package struct Carried<Value>: @unchecked Sendable {
    package let value: Value

    package init(_ value: Value) { self.value = value }
}
