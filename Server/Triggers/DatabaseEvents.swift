import HearthDocuments
import HearthEngine
import HearthEvents
import HearthModel
import Synchronization

/// The events of one database of Cloud Firestore: which triggers a commit concerns is decided and stored in the commit's
/// own transaction.
package final class DatabaseEvents: EventRecorder {
    /// The triggers of a database at a time.
    package struct Triggers: Sendable {
        fileprivate var index = PatternIndex<Int>()
        fileprivate var all: [(id: TriggerID, type: EventType)] = []

        package init(_ definitions: [TriggerDefinition]) {
            for definition in definitions {
                index.insert(all.count, at: definition.pattern)
                all.append((definition.id, definition.type))
            }
        }
    }

    package let ledger: TriggerLedger
    private let triggers: Mutex<Triggers>
    private let notify: @Sendable (_ trigger: TriggerID) -> Void

    /// - Parameters:
    ///   - former: the ledger of the same database, when it was open before.
    ///   - serial: the serial number of the trigger that has a name now.
    ///   - notify: called when a trigger has new events, which are durable. On the writer's thread.
    package init(
        _ triggers: Triggers, in snapshot: any Snapshot, former: TriggerLedger? = nil,
        serial: (_ name: String) -> UInt64 = { _ in 0 },
        notify: @escaping @Sendable (_ trigger: TriggerID) -> Void
    ) throws(Status) {
        self.triggers = Mutex(triggers)
        ledger = try TriggerLedger(DocumentEventRecords.self, in: snapshot, former: former, serial: serial)
        self.notify = notify
    }

    /// The triggers for later commits.
    package func change(_ new: Triggers) { triggers.withLock { $0 = new } }

    /// How many events of a trigger are not settled.
    package func pending(_ id: TriggerID) -> Int { ledger.pending(id) }

    /// Changes the ledger in a transaction of its own.
    /// - Parameter completion: called when that is durable, or has failed.
    func edit(
        _ database: Database, _ body: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void,
        completion: @escaping @Sendable (Result<Void, Status>) -> Void
    ) {
        let hasBegun = SharedValue(Mutex(false))
        database.perform(
            { [ledger] transaction throws(Status) in
                hasBegun.value.withLock { $0 = true }
                try body(transaction)
                try ledger.finish(in: transaction)
            },
            completion: { [self] result in
                // A closed database refuses on another thread, where nothing is staged.
                if hasBegun.value.withLock({ $0 }) {
                    if case .success = result { ended(isDurable: true) } else { ended(isDurable: false) }
                }
                completion(result)
            })
    }

    // MARK: EventRecorder

    package func record(
        _ set: ChangeSet, by author: [UInt8], in transaction: any StoreTransaction
    ) throws(Status) {
        let triggers = triggers.withLock { $0 }
        if triggers.all.isEmpty { return }
        let value = QueuedEvent(author: author).bytes
        for change in set.changes {
            guard let kind = Self.kind(change), let path = DocumentKey.pathBytes(change.key) else { continue }
            var found: [Int] = []
            triggers.index.forEach(EventPath(path)) { index in
                if triggers.all[index].type.wants(kind) { found.append(index) }
            }
            let event = Delivery.Event(version: set.version, key: change.key)
            for index in found { try ledger.put(event, value, for: triggers.all[index].id, in: transaction) }
        }
    }

    private static func kind(_ change: Change) -> ChangeKind? {
        guard change.before?.updateVersion != change.after?.updateVersion else { return nil }
        return change.before == nil ? .created : change.after == nil ? .deleted : .updated
    }

    package func finish(in transaction: any StoreTransaction) throws(Status) { try ledger.finish(in: transaction) }

    package func ended(isDurable: Bool) {
        for trigger in ledger.ended(isDurable: isDurable) { notify(trigger) }
    }

    package func clear(in transaction: any StoreTransaction) throws(Status) {
        try ledger.clear(in: transaction)
        try ledger.finish(in: transaction)
    }

    package var neededVersion: Int64? { ledger.presentOldest }
}
