internal import Foundation

/// A value with a lock. The lock is held only while the value is read or changed: no code of the user runs under it.
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

/// Carries a value that is not `Sendable` to its only user: the user's closures, which the API accepts without
/// `@Sendable` as Apple's API does, and which run on the user's queue.
package struct Carried<Value>: @unchecked Sendable {
    package let value: Value

    package init(_ value: Value) { self.value = value }
}
