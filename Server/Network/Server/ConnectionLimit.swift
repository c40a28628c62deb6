import Glibc
import HearthModel
import Synchronization

/// Keeps the number of open connections within `NetworkLimits.connectionsMax`.
///
/// A connection beyond it waits while each loop closes some that have no request (`IdleConnections`), and the listeners
/// accept no more meanwhile. It is closed when that closes none: when all others are in use.
///
/// `@unchecked Sendable`: the count is atomic, everything else belongs to the first loop.
final class ConnectionLimit: @unchecked Sendable {
    typealias Accepted = (descriptor: Int32, address: String)

    private let connectionsMax: Int
    private let openCount = Atomic<Int>(0)
    private var waiting: [Accepted] = []
    /// None could be closed: until then nothing is searched again, because a search looks at every connection.
    private var fullUntil: UInt64 = 0

    private static let fullMilliseconds: UInt64 = 100

    init(connectionsMax: Int) { self.connectionsMax = connectionsMax }

    /// Counts a connection, unless there are too many.
    func enter() -> Bool {
        if openCount.add(1, ordering: .relaxed).newValue <= connectionsMax { return true }
        leave()
        return false
    }

    /// A counted connection is closed. On any thread.
    func leave() { openCount.subtract(1, ordering: .relaxed) }

    /// What happens to a connection that `enter` does not admit.
    enum Excess {
        case refuse
        /// It waits for a search that is under way.
        case wait
        /// It waits, and the search must begin.
        case displace
    }

    func exceeded(by connection: Accepted, now: UInt64) -> Excess {
        if now < fullUntil { return .refuse }
        waiting.append(connection)
        return waiting.count == 1 ? .displace : .wait
    }

    /// Has each loop close idle connections, a sixteenth of the limit by all together, then calls `done` on the first.
    func displaceIdle(_ contexts: [LoopContext], _ done: @escaping @Sendable () -> Void) {
        let share = max(1, connectionsMax / ConnectionLimit.closedPart / contexts.count)
        let search = Search(count: contexts.count)
        for context in contexts {
            context.loop.execute {
                IdleConnections.close(in: context, max: share)
                // In the next tick: a connection that is sent a last frame is closed at the end of this one.
                context.loop.execute {
                    if search.isLast { contexts[0].loop.execute(done) }
                }
            }
        }
    }

    private static let closedPart = 16

    private final class Search: Sendable {
        private let remaining: Atomic<Int>
        init(count: Int) { remaining = Atomic(count) }
        /// Whether the loop that asks is the last to finish.
        var isLast: Bool { remaining.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
    }

    func takeWaiting() -> [Accepted] {
        defer { waiting = [] }
        return waiting
    }

    func isFull(now: UInt64) { fullUntil = now + ConnectionLimit.fullMilliseconds * 1_000_000 }
}
