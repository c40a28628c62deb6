import HearthDocuments
import HearthEngine
import HearthModel
import Synchronization

/// A trigger. One that gets the name of another that was removed is another trigger.
package struct TriggerID: Hashable, Sendable {
    package let name: String
    /// 0 of the triggers that the process began with.
    package let serial: UInt64

    package init(name: String, serial: UInt64 = 0) {
        self.name = name
        self.serial = serial
    }
}

/// The queues and dead letters of the triggers of one store, and how many records they have.
///
/// A trigger gets a number with its first event, which no other trigger of the store gets:
///
///     keyspace meta, "Q"          the next number (4 bytes)
///     keyspace meta, "Q" · name   the number of the trigger that has the name (4 bytes)
///
/// Numbers are big-endian. A trigger that is removed loses its name with the first step of the deletion of its events;
/// what has a number without a name is deleted when the store is opened.
///
/// How much each has is stored, too: `TriggerCounts`.
///
/// Everything is changed by transactions on the writer's thread, and is seen by others when they are durable: `finish` must
/// end each of them, and `ended` must follow.
package final class TriggerLedger: Sendable {
    private struct Queue {
        let number: UInt32
        var counts = TriggerCounts()

        var events: EventQueue { EventQueue(trigger: number) }
        var letters: DeadLetters { DeadLetters(trigger: number) }
        var bodies: EventBodies { EventBodies(trigger: number) }

        /// Puts a record that is too large for a row.
        /// - Returns: nil for one that isn't.
        mutating func body(
            of record: [UInt8], in transaction: any StoreTransaction
        ) throws(Status) -> EventBodies.Reference? {
            if record.count <= EventBodies.recordBytesMax { return nil }
            let body = EventBodies.Reference(number: counts.nextBody, sizeBytes: record.count)
            counts.nextBody += 1
            try bodies.put(record, body, in: transaction)
            return body
        }
    }

    /// What one transaction deletes of bodies, about.
    private static let deletedBytesMax = 2 << 20
    /// How many dead letters are looked for at a time.
    private static let entriesMax = 16

    private struct State {
        var durable: [TriggerID: Queue] = [:]
        /// What the present transaction has changed; nil for what it has deleted.
        var staged: [TriggerID: Queue?] = [:]
        /// Triggers that it has given events.
        var notified: Set<TriggerID> = []
        /// Whether the store has the counts of all, which those of earlier versions don't.
        var hasCounts: Bool
        /// Whether the present transaction has stored them.
        var storesCounts = false

        func present(_ id: TriggerID) -> Queue? {
            if let changed = staged[id] { return changed }
            return durable[id]
        }
    }

    private let state: Mutex<State>
    private let records: any EventRecords.Type

    private static let mark = EventKeys.number

    /// - Parameters:
    ///   - former: the ledger of the same store, when it was open before.
    ///   - serial: the serial number of the trigger that has a name now.
    init(
        _ records: any EventRecords.Type, in snapshot: any Snapshot, former: TriggerLedger? = nil,
        serial: (_ name: String) -> UInt64 = { _ in 0 }
    ) throws(Status) {
        self.records = records
        var numbers: [TriggerID: UInt32] = [:]
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: [Self.mark]), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            let key = cursor.key.dropFirst()
            if key.isEmpty { continue }
            let (name, number) = (String(decoding: key, as: UTF8.self), Self.number(cursor.value))
            // A trigger that the process has made has nothing in a store that was not open since.
            let id = former?.owner(of: number, name) ?? TriggerID(name: name, serial: former == nil ? 0 : serial(name))
            numbers[id] = number
        }
        let counts = try TriggerCounts.all(in: snapshot)
        let named = Set(numbers.values)
        let known = if let counts { Set(counts.keys) } else { try Self.numbers(in: snapshot) }
        for number in known where !named.contains(number) {
            numbers[TriggerID(name: "", serial: UInt64(number))] = number
        }
        var state = State(hasCounts: counts != nil)
        for (id, number) in numbers {
            var queue = Queue(number: number)
            if let known = counts?[number] ?? nil {
                queue.counts = known
            } else {
                queue.counts = try TriggerCounts(counting: number, in: snapshot)
            }
            state.durable[id] = queue
        }
        self.state = Mutex(state)
    }

    private func owner(of number: UInt32, _ name: String) -> TriggerID? {
        state.withLock { $0.durable.first { $0.value.number == number && UTF8Order.equal($0.key.name, name) }?.key }
    }

    /// The numbers that have events or dead letters.
    static func numbers(in snapshot: any Snapshot) throws(Status) -> Set<UInt32> {
        var numbers: Set<UInt32> = []
        for mark in [EventKeys.event, EventKeys.deadLetter] {
            let cursor = try snapshot.scan(.meta, KeyRange(prefix: [mark]), reverse: false, values: false)
            defer { cursor.close() }
            while try cursor.next() {
                let key = cursor.key
                guard key.count >= 5 else { continue }
                let number = number(key[1..<5])
                numbers.insert(number)
                if number == .max { break }
                try cursor.seek([mark] + bytes(number + 1))
            }
        }
        return numbers
    }

    static func number(_ bytes: some Sequence<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
    private static func bytes(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    // MARK: What is durable

    private func durable(_ id: TriggerID) -> Queue? { state.withLock { $0.durable[id] } }

    /// Triggers that had events here, whether they still exist or not.
    package var ids: [TriggerID] { state.withLock { Array($0.durable.keys) } }

    /// The queue of a trigger; nil before it had an event.
    package func queue(of id: TriggerID) -> EventQueue? { durable(id)?.events }

    /// How many events of a trigger are not settled.
    package func pending(_ id: TriggerID) -> Int { durable(id)?.counts.pending ?? 0 }

    /// The version of the oldest event that waits; nil when none does.
    package func oldest(_ id: TriggerID) -> Int64? { durable(id)?.counts.oldest }

    /// The dead letters of a trigger; nil before it had an event.
    package func deadLetters(of id: TriggerID) -> DeadLetters? { durable(id)?.letters }

    package func deadLetterCount(_ id: TriggerID) -> Int { durable(id)?.counts.deadLetters ?? 0 }

    func hasAny(of id: TriggerID) -> Bool { durable(id)?.counts.isEmpty == false }

    /// Whether there are events or dead letters of any trigger.
    var hasAny: Bool { state.withLock { $0.durable.values.contains { !$0.counts.isEmpty } } }

    /// Adds what there is of each trigger that has something. Costs what this ledger has, and so less than a question for
    /// each of many triggers.
    func add(to all: inout [TriggerID: TriggerTotals]) {
        state.withLock { state in
            for (id, queue) in state.durable where !queue.counts.isEmpty {
                all[id, default: TriggerTotals()].add(queue.counts)
            }
        }
    }

    /// Whether there are counts that the store, which is of an earlier version, gets with the next transaction.
    var countsAreDue: Bool { state.withLock { !$0.hasCounts && !$0.durable.isEmpty } }

    // MARK: In a transaction

    private func present(_ id: TriggerID) -> Queue? { state.withLock { $0.present(id) } }

    private func stage(_ queue: Queue?, of id: TriggerID, isNotified: Bool = false) {
        state.withLock { state in
            state.staged[id] = .some(queue)
            if isNotified { state.notified.insert(id) }
        }
    }

    /// Puts an event into the queue of a trigger that exists.
    func put(
        _ event: Delivery.Event, _ record: [UInt8], for id: TriggerID, in transaction: any StoreTransaction
    ) throws(Status) {
        try put(event, for: id, in: transaction) { queue throws(Status) in
            if let body = try queue.body(of: record, in: transaction) {
                try queue.events.put(event, body, in: transaction)
            } else {
                try queue.events.put(event, record, in: transaction)
            }
        }
    }

    private func put(
        _ event: Delivery.Event, for id: TriggerID, in transaction: any StoreTransaction,
        _ put: (inout Queue) throws(Status) -> Void
    ) throws(Status) {
        var queue = if let known = present(id) { known } else { try newQueue(of: id, in: transaction) }
        try put(&queue)
        queue.counts.pending += 1
        queue.counts.oldest = min(event.version, queue.counts.oldest ?? .max)
        stage(queue, of: id, isNotified: true)
    }

    private func newQueue(of id: TriggerID, in transaction: any StoreTransaction) throws(Status) -> Queue {
        let counter = [Self.mark]
        let number = try transaction.get(.meta, counter).map { Self.number($0) } ?? 1
        guard number < .max else { throw Status(.dataLoss, "The number of the next trigger is damaged.") }
        try transaction.put(.meta, counter, Self.bytes(number + 1))
        try transaction.put(.meta, counter + Array(id.name.utf8), Self.bytes(number))
        return Queue(number: number)
    }

    /// Puts an event that may be in the queue, or be a dead letter.
    /// - Parameter times: when it was given up, of dead letters that may be there; they are deleted.
    func putAgain(
        _ event: Delivery.Event, _ record: [UInt8], insteadOf times: [Int64], for id: TriggerID,
        in transaction: any StoreTransaction
    ) throws(Status) {
        if try present(id)?.events.contains(event, in: transaction) != true {
            try put(event, record, for: id, in: transaction)
        }
        for time in times {
            try delete(DeadLetters.Entry(time: time, event: event), of: id, in: transaction)
        }
    }

    private func delete(
        _ entry: DeadLetters.Entry, of id: TriggerID, keepsBody: Bool = false, in transaction: any StoreTransaction
    ) throws(Status) {
        guard var queue = present(id), try queue.letters.delete(entry, keepsBody: keepsBody, in: transaction) != nil
        else { return }
        queue.counts.deadLetters -= 1
        stage(queue, of: id)
    }

    /// Deletes events from a trigger's queue, and keeps those that were given up; the oldest dead letters go when there
    /// are too many. Events that are not in the queue any more count for nothing.
    func settle(_ settlement: EventSettlement, of id: TriggerID, in transaction: any StoreTransaction) throws(Status) {
        guard var queue = present(id) else { return }
        for event in settlement.events {
            guard try records.release(event, from: queue.events, in: transaction) != nil else { continue }
            queue.counts.pending -= 1
            guard let (entry, given) = settlement.letters[event] else { continue }
            var letter = given
            letter.body = try queue.body(of: letter.record, in: transaction)
            try queue.letters.put(letter, entry, in: transaction)
            queue.counts.deadLetters += 1
        }
        let excess = queue.counts.deadLetters - DeadLetters.countMax
        if excess > 0 {
            queue.counts.deadLetters -=
                try queue.letters.delete(
                    before: nil, in: transaction, limit: excess, bytesMax: Self.deletedBytesMax
                ).count
        }
        if let oldest = queue.counts.oldest, settlement.events.contains(where: { $0.version == oldest }) {
            // What lies before was deleted, and is not looked at again.
            queue.counts.oldest = try queue.events.first(from: oldest, in: transaction)
        }
        stage(queue, of: id)
    }

    /// Makes dead letters events again, a part at a time. One that is damaged stays what it is.
    /// - Parameters:
    ///   - entry: the one behind which it begins.
    ///   - limit: how many are looked at.
    ///   - bytesMax: ends behind the one with which so many bytes were copied.
    /// - Returns: how many, of how many that were looked at, and the last one of these; nil at the end.
    func replay(
        _ id: TriggerID, after entry: DeadLetters.Entry?, in transaction: any StoreTransaction, limit: Int,
        bytesMax: Int
    ) throws(Status) -> (count: Int, seen: Int, last: DeadLetters.Entry?) {
        guard let letters = present(id)?.letters else { return (0, 0, nil) }
        var (count, seen, sizeBytes) = (0, 0, 0)
        var last = entry
        while seen < limit {
            let found = try letters.entries(
                after: last, countMax: min(limit - seen, Self.entriesMax), in: transaction)
            for entry in found {
                if sizeBytes >= bytesMax { return (count, seen, last) }
                last = entry
                seen += 1
                guard let copied = try replay(entry, id, letters, in: transaction) else { continue }
                sizeBytes += copied
                count += 1
            }
            if found.isEmpty { return (count, seen, nil) }
        }
        return (count, seen, last)
    }

    /// - Returns: how many bytes were copied; nil for one that is damaged.
    private func replay(
        _ entry: DeadLetters.Entry, _ id: TriggerID, _ letters: DeadLetters, in transaction: any StoreTransaction
    ) throws(Status) -> Int? {
        let event = entry.event
        if try present(id)?.events.contains(event, in: transaction) == true {
            try delete(entry, of: id, in: transaction)
            return 0
        }
        guard let head = try letters.head(entry, in: transaction) else { return nil }
        if records.queuesRecords, let body = head.body {
            // The body is the event's from now on.
            guard let bodies = present(id)?.bodies, try bodies.contains(body, in: transaction) else { return nil }
            try put(event, for: id, in: transaction) { queue throws(Status) in
                try queue.events.put(event, body, in: transaction)
            }
            try delete(entry, of: id, keepsBody: true, in: transaction)
            return 0
        }
        guard let letter = try letters.readable(entry, in: transaction),
            let record = try restored(letter, event, in: transaction)
        else { return nil }
        try put(event, record, for: id, in: transaction)
        try delete(entry, of: id, in: transaction)
        return letter.record.count
    }

    /// What the queue gets of a dead letter; nil when that is damaged.
    private func restored(
        _ letter: DeadLetter, _ event: Delivery.Event, in transaction: any StoreTransaction
    ) throws(Status) -> [UInt8]? {
        do throws(Status) {
            return try records.restore(letter.record, for: event, in: transaction)
        } catch {
            if error.code == .dataLoss { return nil }
            throw error
        }
    }

    /// Deletes dead letters, a part at a time.
    /// - Parameter time: only those that were given up before; nil for all.
    /// - Returns: how many, and whether there are no others.
    func deleteDeadLetters(
        _ id: TriggerID, before time: Int64?, in transaction: any StoreTransaction, limit: Int
    ) throws(Status) -> (count: Int, isDone: Bool) {
        guard var queue = present(id) else { return (0, true) }
        let deleted = try queue.letters.delete(
            before: time, in: transaction, limit: limit, bytesMax: Self.deletedBytesMax)
        queue.counts.deadLetters -= deleted.count
        if deleted.count > 0 { stage(queue, of: id) }
        return deleted
    }

    /// Deletes a part of what there is of a trigger that is gone, which gets no events any more.
    /// - Returns: how many events that were, and whether it is done.
    func forget(
        _ id: TriggerID, in transaction: any StoreTransaction, limit: Int
    ) throws(Status) -> (events: Int, isDone: Bool) {
        guard var queue = present(id) else { return (0, true) }
        let nameKey = [Self.mark] + Array(id.name.utf8)
        // Another trigger may have the name now.
        let owner = try transaction.get(.meta, nameKey).map { Self.number($0) }
        if !id.name.isEmpty, owner == queue.number {
            try transaction.delete(.meta, nameKey)
        }
        // What lies before was deleted by earlier steps, and is not looked at again.
        let begin = Delivery.Event(version: queue.counts.oldest ?? 0, key: [])
        let events = try queue.events.events(after: begin, countMax: limit, in: transaction)
        var (count, sizeBytes) = (0, 0)
        for event in events where sizeBytes < Self.deletedBytesMax {
            sizeBytes += try records.release(event, from: queue.events, in: transaction) ?? 0
            count += 1
        }
        queue.counts.pending -= count
        let last = count > 0 ? events[count - 1].version : begin.version
        queue.counts.oldest = try queue.events.first(from: last, in: transaction)
        let letters = try queue.letters.delete(
            before: nil, in: transaction, limit: limit, bytesMax: Self.deletedBytesMax)
        queue.counts.deadLetters -= letters.count
        let isDone = count == events.count && count < limit && letters.isDone
        stage(isDone ? nil : queue, of: id)
        return (count, isDone)
    }

    /// Deletes all events and dead letters; the numbers stay.
    func clear(in transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(.meta, EventQueue.all, limit: .max)
        try transaction.delete(.meta, DeadLetters.all, limit: .max)
        try transaction.delete(.meta, EventBodies.all, limit: .max)
        state.withLock { state in
            for (id, queue) in state.durable { state.staged[id] = .some(Queue(number: queue.number)) }
        }
    }

    /// Stores the counts of what the transaction has changed; the first time in a store those of all.
    func finish(in transaction: any StoreTransaction) throws(Status) {
        let (changed, isFirst) = state.withLock { state -> ([UInt32: TriggerCounts?], Bool) in
            let isFirst = !state.hasCounts && !(state.durable.isEmpty && state.staged.isEmpty)
            var changed: [UInt32: TriggerCounts?] = [:]
            if isFirst {
                changed = Dictionary(
                    state.durable.values.map { ($0.number, $0.counts) }, uniquingKeysWith: { first, _ in first })
            }
            for (id, queue) in state.staged {
                guard let number = queue?.number ?? state.durable[id]?.number else { continue }
                changed[number] = .some(queue?.counts)
            }
            state.storesCounts = isFirst
            return (changed, isFirst)
        }
        if isFirst { try transaction.put(.meta, TriggerCounts.completeKey, TriggerCounts.complete) }
        for (number, counts) in changed {
            if let counts {
                try transaction.put(.meta, TriggerCounts.key(number), counts.bytes)
            } else {
                try transaction.delete(.meta, TriggerCounts.key(number))
            }
        }
    }

    /// The version of the oldest event of all triggers, as of the present transaction.
    var presentOldest: Int64? {
        state.withLock { state in
            Set(state.durable.keys).union(state.staged.keys).compactMap { state.present($0)?.counts.oldest }.min()
        }
    }

    /// The transaction is durable, or undone.
    /// - Returns: the triggers that have new events.
    func ended(isDurable: Bool) -> Set<TriggerID> {
        state.withLock { state in
            defer {
                state.staged = [:]
                state.notified = []
                state.storesCounts = false
            }
            guard isDurable else { return [] }
            if state.storesCounts { state.hasCounts = true }
            for (id, queue) in state.staged { state.durable[id] = queue }
            return state.notified
        }
    }
}

/// What the records of a queue refer to.
protocol EventRecords: SendableMetatype {
    /// Whether the queue gets the record of a dead letter as it is.
    static var queuesRecords: Bool { get }

    /// Deletes an event from a queue, with what only it refers to.
    /// - Returns: the bytes of what the queue has of it; nil when that has no such event.
    static func release(
        _ event: Delivery.Event, from queue: EventQueue, in transaction: any StoreTransaction
    ) throws(Status) -> Int?

    /// Puts back what the record of a dead letter has of an event that is not in the queue.
    /// - Returns: what the queue gets.
    /// - Throws: DATA_LOSS for a damaged record, when nothing is changed; what the store throws.
    static func restore(
        _ record: [UInt8], for event: Delivery.Event, in transaction: any StoreTransaction
    ) throws(Status) -> [UInt8]
}

/// Events of Cloud Firestore: the queue's records are all there is.
enum DocumentEventRecords: EventRecords {
    static let queuesRecords = true

    static func release(
        _ event: Delivery.Event, from queue: EventQueue, in transaction: any StoreTransaction
    ) throws(Status) -> Int? {
        try queue.remove(event, in: transaction)
    }

    static func restore(
        _ record: [UInt8], for event: Delivery.Event, in transaction: any StoreTransaction
    ) throws(Status) -> [UInt8] {
        _ = try QueuedEvent(record)
        return record
    }
}
