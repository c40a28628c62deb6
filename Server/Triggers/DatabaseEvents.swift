import HearthDocuments
import HearthEngine
import HearthEvents
import HearthModel
import Synchronization

/// The events of one database of Cloud Firestore: which triggers a commit concerns is decided and stored in the commit's
/// own transaction.
///
/// Beside the queues (`EventQueue`) the store has the numbers of the triggers that had an event, which no other trigger of
/// the database gets:
///
///     keyspace meta, "Q"          the next number (4 bytes)
///     keyspace meta, "Q" · name   the trigger's number (4 bytes)
package final class DatabaseEvents: EventRecorder {
    /// The triggers of a database at a time.
    package struct Triggers: Sendable {
        fileprivate var index = PatternIndex<Int>()
        fileprivate var all: [(name: String, type: EventType)] = []

        package init(_ definitions: [TriggerDefinition]) {
            for definition in definitions {
                index.insert(all.count, at: definition.pattern)
                all.append((definition.name, definition.type))
            }
        }
    }

    private struct State {
        var triggers: Triggers
        var numbers: [String: UInt32]
        /// How many events of a trigger are not settled.
        var pending: [String: Int]
    }

    /// What the present transaction has put; of the writer's thread.
    private struct Staged {
        var numbers: [String: UInt32] = [:]
        var counts: [String: Int] = [:]
        var isCleared = false
    }

    private let state: Mutex<State>
    private let staged = Mutex(Staged())
    private let notify: @Sendable (_ events: DatabaseEvents, _ trigger: String) -> Void

    private static let numberMark = UInt8(ascii: "Q")

    /// - Parameter notify: called when a trigger has new events, which are durable. On the writer's thread.
    package init(
        _ triggers: Triggers, in snapshot: any Snapshot,
        notify: @escaping @Sendable (_ events: DatabaseEvents, _ trigger: String) -> Void
    ) throws(Status) {
        var numbers: [String: UInt32] = [:]
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: [Self.numberMark]), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            let name = cursor.key.dropFirst()
            if !name.isEmpty { numbers[String(decoding: name, as: UTF8.self)] = Self.number(cursor.value) }
        }
        var pending: [String: Int] = [:]
        for (name, number) in numbers { pending[name] = try EventQueue(trigger: number).count(in: snapshot) }
        state = Mutex(State(triggers: triggers, numbers: numbers, pending: pending))
        self.notify = notify
    }

    private static func number(_ bytes: [UInt8]) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }

    // MARK: Triggers

    /// The triggers for later commits.
    package func change(_ triggers: Triggers) { state.withLock { $0.triggers = triggers } }

    /// The queue of a trigger; nil before it had an event.
    package func queue(of trigger: String) -> EventQueue? {
        state.withLock { $0.numbers[trigger] }.map { EventQueue(trigger: $0) }
    }

    /// Names of triggers that had events here, whether they still exist or not.
    package var names: [String] { state.withLock { Array($0.numbers.keys) } }

    package func pending(_ trigger: String) -> Int { state.withLock { $0.pending[trigger] ?? 0 } }

    /// Events were removed from a queue, which is durable, or put into it again.
    func changePending(_ trigger: String, by count: Int) {
        state.withLock { $0.pending[trigger, default: 0] += count }
    }

    /// Forgets a trigger that is gone: deletes a part of its queue, and in the end its number.
    /// - Returns: how many events that were, and whether it is done.
    package func forget(
        _ trigger: String, in transaction: any StoreTransaction, limit: Int
    ) throws(Status) -> (events: Int, isDone: Bool) {
        guard let queue = queue(of: trigger) else { return (0, true) }
        let count = try queue.deleteAll(in: transaction, limit: limit)
        if count == limit { return (count, false) }
        try transaction.delete(.meta, [Self.numberMark] + Array(trigger.utf8))
        return (count, true)
    }

    /// A trigger was forgotten, which is durable.
    package func forgot(_ trigger: String) {
        state.withLock { state in
            state.numbers[trigger] = nil
            state.pending[trigger] = nil
        }
    }

    // MARK: EventRecorder

    package func record(
        _ set: ChangeSet, by author: [UInt8], in transaction: any StoreTransaction
    ) throws(Status) {
        let (triggers, numbers) = state.withLock { ($0.triggers, $0.numbers) }
        if triggers.all.isEmpty { return }
        let value = QueuedEvent(author: author).bytes
        for change in set.changes {
            guard let kind = Self.kind(change), let path = DocumentKey.decode(change.key) else { continue }
            var found: [Int] = []
            triggers.index.forEach(EventPath(path.string)) { index in
                if triggers.all[index].type.wants(kind) { found.append(index) }
            }
            for index in found {
                let name = triggers.all[index].name
                let number: UInt32
                if let known = numbers[name] {
                    number = known
                } else {
                    number = try newNumber(of: name, in: transaction)
                }
                try EventQueue(trigger: number).put(
                    Delivery.Event(version: set.version, key: change.key), value, in: transaction)
                staged.withLock { $0.counts[name, default: 0] += 1 }
            }
        }
    }

    private static func kind(_ change: Change) -> ChangeKind? {
        guard change.before?.updateVersion != change.after?.updateVersion else { return nil }
        return change.before == nil ? .created : change.after == nil ? .deleted : .updated
    }

    private func newNumber(of name: String, in transaction: any StoreTransaction) throws(Status) -> UInt32 {
        if let number = staged.withLock({ $0.numbers[name] }) { return number }
        let counter = [Self.numberMark]
        let number = try transaction.get(.meta, counter).map(Self.number) ?? 1
        try transaction.put(.meta, counter, Self.bytes(number + 1))
        try transaction.put(.meta, counter + Array(name.utf8), Self.bytes(number))
        staged.withLock { $0.numbers[name] = number }
        return number
    }

    private static func bytes(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    package func ended(isDurable: Bool) {
        let ended = staged.withLock { staged in
            defer { staged = Staged() }
            return staged
        }
        guard isDurable else { return }
        if ended.isCleared || !ended.counts.isEmpty {
            state.withLock { state in
                if ended.isCleared { state.pending = [:] }
                for (name, number) in ended.numbers { state.numbers[name] = number }
                for (name, count) in ended.counts { state.pending[name, default: 0] += count }
            }
        }
        for name in ended.counts.keys { notify(self, name) }
    }

    package func clear(in transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(.meta, EventQueue.all, limit: .max)
        staged.withLock { $0.isCleared = true }
    }

    package func neededVersion(in snapshot: any Snapshot) throws(Status) -> Int64? {
        var needed: Int64?
        for number in state.withLock({ $0.numbers.values.map { $0 } }) {
            guard let first = try EventQueue(trigger: number).events(after: nil, countMax: 1, in: snapshot).first else {
                continue
            }
            needed = min(needed ?? .max, first.version)
        }
        return needed
    }
}
