import HearthNetwork
import HearthDocuments
import Synchronization

/// The subscriptions of all loops and databases.
final class LoopSubscriptionsTable: Sendable {
    private struct Key: Hashable {
        var database: ObjectIdentifier
        var loop: Int
    }

    private let all = Mutex<[Key: LoopSubscriptions]>([:])

    /// On the stream's loop.
    func join(_ stream: ListenStream, _ database: Database, _ loop: EventLoop) -> LoopSubscriptions {
        let key = Key(database: ObjectIdentifier(database), loop: loop.index)
        let listeners = all.withLock { all in
            let found = all[key] ?? LoopSubscriptions(database, loop)
            all[key] = found
            return found
        }
        listeners.add(stream)
        return listeners
    }

    /// The rules have changed. From any thread.
    func judgeAll() {
        for listeners in all.withLock({ Array($0.values) }) { listeners.loop.execute { listeners.judgeAll() } }
    }

    /// On the stream's loop.
    func leave(_ stream: ListenStream, _ listeners: LoopSubscriptions, _ loop: EventLoop) {
        listeners.remove(stream)
        guard listeners.isUnused else { return }
        let key = Key(database: ObjectIdentifier(listeners.database), loop: loop.index)
        all.withLock { all in if all[key] === listeners { all[key] = nil } }
    }
}
