import HearthConcurrency
import HearthDocuments
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
        fileprivate var all: [(id: TriggerID, type: EventType)] = []

        package init(_ definitions: [TriggerDefinition]) {
            for definition in definitions {
                patterns.insert(all.count, at: definition.pattern)
                all.append((definition.id, definition.type))
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
    let elapsed: ElapsedTime
    private let notify: @Sendable (_ trigger: TriggerID) -> Void

    /// - Parameters:
    ///   - view: of the namespace's tree.
    ///   - former: the ledger of the same namespace, when it was open before.
    ///   - serial: the serial number of the trigger that has a name now.
    ///   - notify: called when a trigger has new events, which are durable. On the writer's thread.
    package init(
        _ triggers: Triggers, namespace: String, before view: TreeView, bounds: Bounds = Bounds(),
        clock: any Clock = SystemClock(), former: TriggerLedger? = nil, serial: (_ name: String) -> UInt64 = { _ in 0 },
        notify: @escaping @Sendable (_ trigger: TriggerID) -> Void
    ) throws(Status) {
        self.namespace = namespace
        self.bounds = bounds
        self.clock = clock
        self.triggers = Mutex(triggers)
        ledger = try TriggerLedger(TreeEventRecords.self, in: view.records, former: former, serial: serial)
        elapsed = ElapsedTime(clock: clock, newestVersion: view.version)
        commits = Mutex(Commits(newest: (view.version, clock.monotonicNanoseconds())))
        self.notify = notify
    }

    /// The triggers for later writes.
    package func change(_ new: Triggers) { triggers.withLock { $0 = new } }

    /// How many events of a trigger are not settled.
    package func pending(_ id: TriggerID) -> Int { ledger.pending(id) }

    /// The newest commit that was recorded, and when that was.
    var newestCommit: (version: Int64, nanoseconds: UInt64) { commits.withLock { $0.newest } }

    // MARK: TreeRecorder

    package func record(
        _ changes: [TreeChange], version: Int64, by author: () -> [UInt8], before view: TreeView,
        in transaction: any StoreTransaction
    ) throws(Status) {
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
                try ledger.put(event, TreeEventRecords.reference, for: triggers.all[trigger].id, in: transaction)
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

    package func finish(in transaction: any StoreTransaction) throws(Status) { try ledger.finish(in: transaction) }

    package func ended(isDurable: Bool) {
        let now = clock.monotonicNanoseconds()
        commits.withLock { commits in
            if isDurable, let version = commits.present { commits.newest = (version, now) }
            commits.present = nil
        }
        for trigger in ledger.ended(isDurable: isDurable) { notify(trigger) }
    }
}
