import HearthDocuments
import HearthEngine
import HearthModel

/// Deletes the events and dead letters of commits that were undone (`Rollback`): no function may be called for them.
/// What waited then and was delivered since is not sent again; what waits still is sent.
package enum TriggerRollback {
    /// Events that one transaction deletes.
    private static let stepMax = 500

    /// - Parameters:
    ///   - time: in microseconds since 1970.
    ///   - store: used by nobody else.
    ///   - check: called between the steps; throws to end.
    /// - Returns: how many events and dead letters there were.
    package static func run(
        _ store: any Store, to time: Int64, check: () throws(Status) -> Void = {}
    ) throws(Status) -> Int {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var count = 0
        for number in try TriggerLedger.numbers(in: snapshot).sorted() {
            count += try forgetEvents(number, time, store, snapshot, check)
            count += try forgetLetters(number, time, store, snapshot, check)
        }
        // Counted anew when the store is opened.
        if count > 0 { try store.write { transaction throws(Status) in try TriggerCounts.forget(in: transaction) } }
        return count
    }

    private static func forgetEvents(
        _ number: UInt32, _ time: Int64, _ store: any Store, _ snapshot: any Snapshot,
        _ check: () throws(Status) -> Void
    ) throws(Status) -> Int {
        let queue = EventQueue(trigger: number)
        var last = Delivery.Event(version: time + 1, key: [])
        var count = 0
        while true {
            try check()
            let events = try queue.events(after: last, countMax: stepMax, in: snapshot)
            guard let end = events.last else { return count }
            try store.write { transaction throws(Status) in
                for event in events { _ = try queue.remove(event, in: transaction) }
            }
            last = end
            count += events.count
        }
    }

    private static func forgetLetters(
        _ number: UInt32, _ time: Int64, _ store: any Store, _ snapshot: any Snapshot,
        _ check: () throws(Status) -> Void
    ) throws(Status) -> Int {
        let letters = DeadLetters(trigger: number)
        var last: DeadLetters.Entry?
        var count = 0
        while true {
            try check()
            let entries = try letters.entries(after: last, countMax: stepMax, in: snapshot)
            guard let end = entries.last else { return count }
            let undone = entries.filter { $0.event.version > time }
            if !undone.isEmpty {
                try store.write { transaction throws(Status) in
                    for entry in undone { _ = try letters.delete(entry, in: transaction) }
                }
            }
            last = end
            count += undone.count
        }
    }
}
