internal import Foundation

/// A value behind a lock. Holds it for as short as reading or changing takes: nothing of the user's runs under it.
package final class Locked<Value>: @unchecked Sendable {
    // `lock` guards `value`.
    private let lock = NSLock()
    private var value: Value

    package init(_ value: Value) { self.value = value }

    package func with<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result
    {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

/// Carries what isn't `Sendable` to the one place that uses it: the closures of the user, which the API takes without
/// `@Sendable` as Apple's does, and which run on his queue.
package struct Carried<Value>: @unchecked Sendable {
    package let value: Value

    package init(_ value: Value) { self.value = value }
}
