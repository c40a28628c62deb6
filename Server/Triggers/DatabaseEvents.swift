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
///
/// Dead letters are in queues of their own (`DeadLetters`), which no number is given to twice either.
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
        /// The version of the first of them.
        var oldest: [String: Int64]
        var deadLetters: [String: Int]
    }

    /// What the present transaction has put; of the writer's thread.
    private struct Staged {
        var numbers: [String: UInt32] = [:]
        var counts: [String: Int] = [:]
        var first: [String: Int64] = [:]
        var isCleared = false
    }

    private let state: Mutex<State>
    private let staged = Mutex(Staged())
    private let notify: @Sendable (_ events: DatabaseEvents, _ trigger: String) -> Void

    private static let numberMark = EventKeys.number

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
        var oldest: [String: Int64] = [:]
        var dead: [String: Int] = [:]
        for (name, number) in numbers {
            let queue = EventQueue(trigger: number)
            pending[name] = try queue.count(in: snapshot)
            oldest[name] = try queue.first(in: snapshot)
            dead[name] = try DeadLetters(trigger: number).count(in: snapshot)
        }
        state = Mutex(
            State(triggers: triggers, numbers: numbers, pending: pending, oldest: oldest, deadLetters: dead))
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

    /// The dead letters of a trigger; nil before it had an event.
    package func deadLetters(of trigger: String) -> DeadLetters? {
        state.withLock { $0.numbers[trigger] }.map { DeadLetters(trigger: $0) }
    }

    /// Whether there are events or dead letters of any trigger.
    var hasAny: Bool {
        state.withLock { $0.pending.values.contains { $0 > 0 } || $0.deadLetters.values.contains { $0 > 0 } }
    }

    package func deadLetterCount(_ trigger: String) -> Int { state.withLock { $0.deadLetters[trigger] ?? 0 } }

    func changeDeadLetters(_ trigger: String, by count: Int) {
        state.withLock { $0.deadLetters[trigger, default: 0] += count }
    }

    /// The version of the oldest event that waits; nil when none does.
    package func oldestPending(_ trigger: String) -> Int64? { state.withLock { $0.oldest[trigger] } }

    /// Events were removed from a queue, which is durable, or put into it again.
    /// - Parameter oldest: the version of the first event in the queue now.
    func changePending(_ trigger: String, by count: Int, oldest: Int64?) {
        state.withLock { state in
            state.pending[trigger, default: 0] += count
            state.oldest[trigger] = oldest
        }
    }

    /// Forgets a trigger that is gone: deletes a part of its queue, and in the end its number.
    /// - Returns: how many events that were, and whether it is done.
    package func forget(
        _ trigger: String, in transaction: any StoreTransaction, limit: Int
    ) throws(Status) -> (events: Int, isDone: Bool) {
        guard let queue = queue(of: trigger) else { return (0, true) }
        let count = try queue.deleteAll(in: transaction, limit: limit)
        if count == limit { return (count, false) }
        if let letters = deadLetters(of: trigger), try letters.deleteAll(in: transaction, limit: limit) == limit {
            return (count, false)
        }
        try transaction.delete(.meta, [Self.numberMark] + Array(trigger.utf8))
        return (count, true)
    }

    /// Puts an event into a trigger's queue in a transaction that makes no commit.
    /// - Returns: false when it is there already.
    func put(
        _ event: Delivery.Event, _ record: [UInt8], for trigger: String, in transaction: any StoreTransaction
    ) throws(Status) -> Bool {
        let queue = EventQueue(trigger: try number(of: trigger, in: transaction))
        if try queue.record(of: event, in: transaction) != nil { return false }
        try queue.put(event, record, in: transaction)
        // What is settled meanwhile looks for the oldest one from here on.
        state.withLock { if let oldest = $0.oldest[trigger] { $0.oldest[trigger] = min(oldest, event.version) } }
        return true
    }

    private func number(of trigger: String, in transaction: any StoreTransaction) throws(Status) -> UInt32 {
        if let number = state.withLock({ $0.numbers[trigger] }) { return number }
        if let bytes = try transaction.get(.meta, [Self.numberMark] + Array(trigger.utf8)) { return Self.number(bytes) }
        return try newNumber(of: trigger, in: transaction)
    }

    /// Such a transaction is durable.
    func havePut(_ count: Int, for trigger: String, in snapshot: any Snapshot) throws(Status) {
        if let bytes = try snapshot.get(.meta, [Self.numberMark] + Array(trigger.utf8)) {
            state.withLock { $0.numbers[trigger] = Self.number(bytes) }
        }
        changePending(trigger, by: count, oldest: try queue(of: trigger)?.first(in: snapshot))
    }

    /// A trigger was forgotten, which is durable.
    package func forgot(_ trigger: String) {
        state.withLock { state in
            state.numbers[trigger] = nil
            state.pending[trigger] = nil
            state.oldest[trigger] = nil
            state.deadLetters[trigger] = nil
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
            guard let kind = Self.kind(change), let path = DocumentKey.pathBytes(change.key) else { continue }
            var found: [Int] = []
            triggers.index.forEach(EventPath(path)) { index in
                if triggers.all[index].type.wants(kind) { found.append(index) }
            }
            for index in found {
                let name = triggers.all[index].name
                let number: UInt32
                if let known = numbers[name] {
                    number = known
                } else if let known = staged.withLock({ $0.numbers[name] }) {
                    number = known
                } else {
                    number = try self.number(of: name, in: transaction)
                    staged.withLock { $0.numbers[name] = number }
                }
                try EventQueue(trigger: number).put(
                    Delivery.Event(version: set.version, key: change.key), value, in: transaction)
                staged.withLock { staged in
                    staged.counts[name, default: 0] += 1
                    if staged.first[name] == nil { staged.first[name] = set.version }
                }
            }
        }
    }

    private static func kind(_ change: Change) -> ChangeKind? {
        guard change.before?.updateVersion != change.after?.updateVersion else { return nil }
        return change.before == nil ? .created : change.after == nil ? .deleted : .updated
    }

    private func newNumber(of name: String, in transaction: any StoreTransaction) throws(Status) -> UInt32 {
        let counter = [Self.numberMark]
        let number = try transaction.get(.meta, counter).map(Self.number) ?? 1
        try transaction.put(.meta, counter, Self.bytes(number + 1))
        try transaction.put(.meta, counter + Array(name.utf8), Self.bytes(number))
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
                if ended.isCleared {
                    state.pending = [:]
                    state.oldest = [:]
                    state.deadLetters = [:]
                }
                for (name, number) in ended.numbers { state.numbers[name] = number }
                for (name, count) in ended.counts {
                    if state.pending[name, default: 0] == 0 { state.oldest[name] = ended.first[name] }
                    state.pending[name, default: 0] += count
                }
            }
        }
        for name in ended.counts.keys { notify(self, name) }
    }

    package func clear(in transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(.meta, EventQueue.all, limit: .max)
        try transaction.delete(.meta, DeadLetters.all, limit: .max)
        staged.withLock { $0.isCleared = true }
    }

    package func neededVersion(in snapshot: any Snapshot) throws(Status) -> Int64? {
        var needed: Int64?
        for number in state.withLock({ $0.numbers.values.map { $0 } }) {
            guard let first = try EventQueue(trigger: number).first(in: snapshot) else { continue }
            needed = min(needed ?? .max, first)
        }
        return needed
    }
}
