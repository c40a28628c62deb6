internal import Dispatch

/// The uses of caches that are about to end: a cache is used by one instance after another, and its next use waits
/// until those before it have ended. So a call that ends an instance has its effect when it returns, although the
/// instance ends later on its own queue.
package final class CacheEndings<Name: Hashable & Sendable>: Sendable {
    /// The ending of one use. Call `end()` once.
    package final class Ending: Sendable {
        fileprivate let group = DispatchGroup()
        /// Of the ending before.
        private let former: DispatchGroup?
        private let onEnd: @Sendable (Ending) -> Void

        fileprivate init(after former: Ending?, onEnd: @escaping @Sendable (Ending) -> Void) {
            self.former = former?.group
            self.onEnd = onEnd
            group.enter()
        }

        package func end() {
            onEnd(self)
            group.leave()
        }

        /// Runs work on a queue of the library after the uses before this one.
        package func afterFormer(_ work: @escaping @Sendable () -> Void) {
            (former ?? DispatchGroup()).notify(queue: .global(), execute: work)
        }
    }

    private let last = Locked<[Name: Ending]>([:])

    package init() {}

    /// An ending after all that have begun.
    package func begin(_ name: Name) -> Ending {
        last.with { last in
            let ending = Ending(after: last[name]) { [self] ending in
                self.last.with { if $0[name] === ending { $0[name] = nil } }
            }
            last[name] = ending
            return ending
        }
    }

    /// Runs work when all endings that have begun have ended, on a queue of the library.
    package func afterAll(_ name: Name, _ work: @escaping @Sendable () -> Void) {
        (last.with { $0[name] }?.group ?? DispatchGroup()).notify(queue: .global(), execute: work)
    }

    /// Waits for all endings that have begun, but at most `secondsMax`.
    package func wait(_ name: Name, secondsMax: Int) {
        _ = last.with { $0[name] }?.group.wait(timeout: .now() + .seconds(secondsMax))
    }
}
