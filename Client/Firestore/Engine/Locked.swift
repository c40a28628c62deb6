internal import Foundation

/// A value behind a lock. Holds it for as short as reading or changing takes: nothing of the user's runs under it.
final class Locked<Value>: @unchecked Sendable {
    // `lock` guards `value`.
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    func with<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

/// Carries what isn't `Sendable` to the one place that uses it: the closures of the user, which the API takes without
/// `@Sendable` as Apple's does, and which run on his queue.
struct Carried<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}
