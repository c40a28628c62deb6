import HearthModel
import Synchronization

/// The cancellation state of a call.
package final class Cancellation: Sendable {
    /// The closures that run when the call is cancelled. A key is reserved before its closure exists.
    private struct Handlers: Sendable {
        var next = 0
        var byKey: [Int: (@Sendable () -> Void)?] = [:]
    }

    package init() {}

    private let flag = Atomic<Bool>(false)
    private let handlers = Mutex(Handlers())

    package var isCancelled: Bool { flag.load(ordering: .relaxed) }

    /// For queued work: whether a caller still waits for it.
    package var isWanted: @Sendable () -> Bool { { [self] in !isCancelled } }

    package func cancel() {
        flag.store(true, ordering: .relaxed)
        let ends = handlers.withLock { handlers in
            defer { handlers.byKey = [:] }
            return handlers.byKey.values.compactMap { $0 }
        }
        for end in ends { end() }
    }

    /// - Throws: `CANCELLED` when no caller waits any more.
    package func check() throws(Status) {
        if isCancelled { throw Status(.cancelled, "The client has cancelled the call.") }
    }

    /// The number of closures that run on cancellation.
    package var handlerCount: Int { handlers.withLock { $0.byKey.count } }

    /// A key for `set`.
    package func reserve() -> Int {
        handlers.withLock { handlers in
            handlers.next += 1
            handlers.byKey[handlers.next] = .some(nil)
            return handlers.next
        }
    }

    package func release(_ key: Int) { handlers.withLock { _ = $0.byKey.removeValue(forKey: key) } }

    /// Registers `end` for cancellation. It runs immediately when the call is already cancelled, even when the key was
    /// released; else it does not run after `release`.
    package func set(_ key: Int, _ end: @escaping @Sendable () -> Void) {
        let isLate = handlers.withLock { handlers in
            // `cancel` sets the flag before it removes the handlers.
            if isCancelled {
                handlers.byKey[key] = nil
                return true
            }
            if handlers.byKey[key] != nil { handlers.byKey[key] = .some(end) }
            return false
        }
        if isLate { end() }
    }
}
