import HearthConcurrency
import HearthEngine
import HearthEvents
import HearthModel
import HearthTree
import HearthTreeStorage
import Synchronization

/// The events of one namespace of the Realtime Database: which triggers a write concerns is decided and stored in the
/// write's own transaction, with all that is needed to send them (`TreeEventRecords`).
package final class TreeEvents: TreeRecorder {
    /// The triggers of a namespace at a time.
    package struct Triggers: Sendable {
        fileprivate var patterns = TreePatterns<Int>()
        fileprivate var all: [(name: String, type: EventType)] = []

        package init(_ definitions: [TriggerDefinition]) {
            for definition in definitions {
                patterns.insert(all.count, at: definition.pattern)
                all.append((definition.name, definition.type))
            }
        }
    }

    package struct Bounds: Sendable {
        /// The bytes of an event, before and delta together: a larger one can't be sent.
        package var eventBytesMax = 16 << 20
        /// The bytes of the stored value before, as `TreeView.node(at:sizeBytesMax:)` counts: each record counts some more
        /// than it has as JSON.
        package var storedBytesMax = 128 << 20
        /// The bytes of all events of a commit: those that follow can't be sent. A transaction with more would need
        /// much memory.
        package var commitBytesMax = 256 << 20

        package init() {}
    }

    private struct Commits {
        /// The newest commit that is durable, and when that was.
        var newest: (version: Int64, nanoseconds: UInt64)
        /// The last one of the present transaction.
        var present: Int64?
    }

    package let namespace: String
    let ledger: TriggerLedger
    private let bounds: Bounds
    private let clock: any Clock
    private let triggers: Mutex<Triggers>
    private let commits: Mutex<Commits>
    private let notify: @Sendable (_ events: TreeEvents, _ trigger: String) -> Void

    /// - Parameters:
    ///   - view: of the namespace's tree.
    ///   - notify: called when a trigger has new events, which are durable. On the writer's thread.
    package init(
        _ triggers: Triggers, namespace: String, before view: TreeView, bounds: Bounds = Bounds(),
        clock: any Clock = SystemClock(), notify: @escaping @Sendable (_ events: TreeEvents, _ trigger: String) -> Void
    ) throws(Status) {
        self.namespace = namespace
        self.bounds = bounds
        self.clock = clock
        self.triggers = Mutex(triggers)
        ledger = try TriggerLedger(in: view.records)
        commits = Mutex(Commits(newest: (view.version, clock.monotonicNanoseconds())))
        self.notify = notify
    }

    /// The triggers for later writes.
    package func change(_ new: Triggers) { triggers.withLock { $0 = new } }

    /// Names of triggers that had events here, whether they still exist or not.
    package var names: [String] { ledger.names }

    package func pending(_ trigger: String) -> Int { ledger.pending(trigger) }

    /// When the oldest event was committed that is not settled.
    func oldestPending(_ trigger: String) -> Int64? { ledger.oldest(trigger) }

    /// The newest commit that was recorded, and when that was.
    var newestCommit: (version: Int64, nanoseconds: UInt64) { commits.withLock { $0.newest } }

    /// The events of a trigger that `change` has taken away before have at most this version.
    var boundary: Int64 { commits.withLock { max($0.newest.version, $0.present ?? 0) } }

    // MARK: TreeRecorder

    package func record(
        _ changes: [TreeChange], version: Int64, by author: () -> [UInt8], before view: TreeView,
        in transaction: any StoreTransaction
    ) throws(Status) {
        // In this order: see `boundary`.
        commits.withLock { $0.present = version }
        let triggers = triggers.withLock { $0 }
        if triggers.all.isEmpty { return }
        if !changes.contains(where: { !$0.isPriority && triggers.patterns.concern($0.path) }) { return }
        let walk = TreeChangeWalk(
            triggers.patterns, before: view, bytesMax: bounds.storedBytesMax,
            wants: { trigger, kind in triggers.all[trigger].type.wants(kind) })
        var storedAuthor: TreeEventRecord.Author?
        var commitBytes = 0
        try walk.run(changes) { found throws(Status) in
            guard let content = content(found, version, &commitBytes) else { return }
            let event = Delivery.Event(version: version, key: Array(found.path.string.utf8))
            let author =
                if let storedAuthor { storedAuthor } else {
                    try TreeEventRecords.put(author: author(), version: version, in: transaction)
                }
            storedAuthor = author
            try TreeEventRecords.put(
                TreeEventRecord(kind: found.kind, author: author, content: content), for: event,
                count: found.triggers.count, in: transaction)
            for trigger in found.triggers {
                try ledger.put(event, TreeEventRecords.reference, for: triggers.all[trigger].name, in: transaction)
            }
        }
    }

    /// - Returns: nil when the value is the same.
    private func content(
        _ found: TreeChangeWalk.Found, _ version: Int64, _ commitBytes: inout Int
    ) -> TreeEventRecord.Content? {
        switch found.values {
        case .tooLarge: return .fault("The value before is too large for an event.")
        case .unreadable(let status): return .fault("The value before can't be read: \(status.message)")
        case .nodes(let before, let after):
            let event = TreeEvent(
                namespace: namespace, path: found.path, time: Timestamp(microseconds: version), before: before,
                after: after, author: .system)
            guard let event else { return nil }
            var data: [UInt8] = []
            event.appendData(to: &data)
            if data.count > bounds.eventBytesMax {
                return .fault("The event has \(data.count) bytes, of at most \(bounds.eventBytesMax).")
            }
            commitBytes += data.count
            if commitBytes > bounds.commitBytesMax {
                return .fault("The events of the write have more than \(bounds.commitBytesMax) bytes.")
            }
            return .data(data)
        }
    }

    package func ended(isDurable: Bool) {
        let now = clock.monotonicNanoseconds()
        commits.withLock { commits in
            if isDurable, let version = commits.present { commits.newest = (version, now) }
            commits.present = nil
        }
        for trigger in ledger.ended(isDurable: isDurable) { notify(self, trigger) }
    }

    // MARK: Settling

    /// Deletes events from a trigger's queue; those that are not there any more count for nothing.
    func release(
        _ events: [Delivery.Event], of trigger: String, in transaction: any StoreTransaction
    ) throws(Status) {
        guard let queue = ledger.presentQueue(of: trigger) else { return }
        var count = 0
        for event in events where try TreeEventRecords.release(event, from: queue, in: transaction) { count += 1 }
        ledger.removed(count, of: trigger, oldest: try queue.first(in: transaction))
    }

    /// Keeps events that were given up; the oldest go when there are too many.
    func keep(
        _ new: [(entry: DeadLetters.Entry, letter: DeadLetter)], of trigger: String,
        in transaction: any StoreTransaction
    ) throws(Status) {
        guard let letters = ledger.presentDeadLetters(of: trigger) else { return }
        for (entry, letter) in new { try letters.put(letter, entry, in: transaction) }
        var count = new.count
        let excess = ledger.presentDeadLetterCount(trigger) + count - DeadLetters.countMax
        if excess > 0 { count -= try letters.deleteAll(in: transaction, limit: excess) }
        ledger.changedDeadLetters(count, of: trigger)
    }

    /// Makes dead letters events again, a part at a time.
    /// - Returns: how many.
    func replay(
        _ trigger: String, in transaction: any StoreTransaction, limit: Int, bytesMax: Int
    ) throws(Status) -> Int {
        guard let letters = ledger.presentDeadLetters(of: trigger) else { return 0 }
        var count = 0
        var sizeBytes = 0
        for entry in try letters.entries(after: nil, countMax: limit, in: transaction) {
            guard sizeBytes < bytesMax, let letter = try letters.letter(entry, in: transaction) else { break }
            try TreeEventRecords.restore(try TreeDeadLetter(letter.record), for: entry.event, in: transaction)
            try ledger.put(entry.event, TreeEventRecords.reference, for: trigger, in: transaction)
            try letters.delete(entry, in: transaction)
            count += 1
            sizeBytes += letter.record.count
        }
        ledger.changedDeadLetters(-count, of: trigger)
        return count
    }

    /// Deletes dead letters, a part at a time.
    /// - Parameter time: only those that were given up before; nil for all.
    /// - Returns: how many.
    func deleteDeadLetters(
        _ trigger: String, before time: Int64?, in transaction: any StoreTransaction, limit: Int
    ) throws(Status) -> Int {
        guard let letters = ledger.presentDeadLetters(of: trigger) else { return 0 }
        let count =
            if let time { try letters.delete(before: time, in: transaction, limit: limit) } else {
                try letters.deleteAll(in: transaction, limit: limit)
            }
        ledger.changedDeadLetters(-count, of: trigger)
        return count
    }

    /// Deletes a part of the events of a trigger that is gone.
    /// - Parameter boundary: later events are of another trigger with the same name.
    /// - Returns: how many that were, and whether it is done.
    func forget(
        _ trigger: String, through boundary: Int64, in transaction: any StoreTransaction, limit: Int
    ) throws(Status) -> (events: Int, isDone: Bool) {
        guard let queue = ledger.presentQueue(of: trigger) else { return (0, true) }
        let events = try queue.events(after: nil, countMax: limit, in: transaction)
        let old = events.filter { $0.version <= boundary }
        try release(old, of: trigger, in: transaction)
        if old.count == limit { return (old.count, false) }
        if let letters = ledger.presentDeadLetters(of: trigger),
            try letters.deleteAll(in: transaction, limit: limit) == limit
        {
            return (old.count, false)
        }
        if old.count == events.count { try ledger.deleteNumber(of: trigger, in: transaction) }
        return (old.count, true)
    }
}
