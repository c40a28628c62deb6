import HearthEngine
import HearthModel
import Synchronization

/// Which triggers had events in a store, and how many of them are not settled.
///
/// A trigger gets a number with its first event, which no other trigger of the store gets:
///
///     keyspace meta, "Q"          the next number (4 bytes)
///     keyspace meta, "Q" · name   the trigger's number (4 bytes)
///
/// Numbers are big-endian.
final class TriggerLedger: Sendable {
    private struct State {
        var numbers: [String: UInt32] = [:]
        var pending: [String: Int] = [:]
        var deadLetters: [String: Int] = [:]
        /// The version of the first event.
        var oldest: [String: Int64] = [:]
    }

    /// What the present transaction has done; of the writer's thread.
    private struct Staged {
        /// Of triggers that have lost their numbers, and of those that have got one.
        var forgotten: Set<String> = []
        var numbers: [String: UInt32] = [:]
        /// Events that were put, less those that were deleted.
        var counts: [String: Int] = [:]
        var deadLetters: [String: Int] = [:]
        var notified: Set<String> = []
        /// The versions of the first events, of queues that have changed.
        var oldest: [String: Int64?] = [:]
    }

    private let state: Mutex<State>
    private let staged = Mutex(Staged())

    private static let mark = UInt8(ascii: "Q")

    init(in snapshot: any Snapshot) throws(Status) {
        var state = State()
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: [Self.mark]), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            let name = cursor.key.dropFirst()
            if !name.isEmpty { state.numbers[String(decoding: name, as: UTF8.self)] = Self.number(cursor.value) }
        }
        for (name, number) in state.numbers {
            state.pending[name] = try EventQueue(trigger: number).count(in: snapshot)
            state.oldest[name] = try EventQueue(trigger: number).first(in: snapshot)
            state.deadLetters[name] = try DeadLetters(trigger: number).count(in: snapshot)
        }
        self.state = Mutex(state)
    }

    private static func number(_ bytes: [UInt8]) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
    private static func bytes(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    /// Names of triggers that had events here, whether they still exist or not.
    var names: [String] { state.withLock { Array($0.numbers.keys) } }

    /// The queue of a trigger; nil before it had an event that is durable.
    func queue(of trigger: String) -> EventQueue? {
        state.withLock { $0.numbers[trigger] }.map { EventQueue(trigger: $0) }
    }

    /// How many events of a trigger are in its queue, which is durable.
    func pending(_ trigger: String) -> Int { state.withLock { $0.pending[trigger] ?? 0 } }

    /// The dead letters of a trigger; nil before it had an event that is durable.
    func deadLetters(of trigger: String) -> DeadLetters? {
        state.withLock { $0.numbers[trigger] }.map { DeadLetters(trigger: $0) }
    }

    func deadLetterCount(_ trigger: String) -> Int { state.withLock { $0.deadLetters[trigger] ?? 0 } }

    /// Whether there are events or dead letters of any trigger.
    var hasAny: Bool {
        state.withLock { $0.pending.values.contains { $0 > 0 } || $0.deadLetters.values.contains { $0 > 0 } }
    }

    // MARK: On the writer's thread, before `ended`

    /// The dead letters of a trigger in the present transaction.
    func presentDeadLetters(of trigger: String) -> DeadLetters? {
        let number = staged.withLock { staged in
            staged.numbers[trigger]
                ?? (staged.forgotten.contains(trigger) ? nil : state.withLock { $0.numbers[trigger] })
        }
        return number.map { DeadLetters(trigger: $0) }
    }

    /// Dead letters were put, or deleted.
    func changedDeadLetters(_ count: Int, of trigger: String) {
        staged.withLock { $0.deadLetters[trigger, default: 0] += count }
    }

    /// How many dead letters a trigger has in the present transaction.
    func presentDeadLetterCount(_ trigger: String) -> Int {
        deadLetterCount(trigger) + staged.withLock { $0.deadLetters[trigger] ?? 0 }
    }

    /// The queue of a trigger in the present transaction.
    func presentQueue(of trigger: String) -> EventQueue? {
        let number = staged.withLock { staged in
            staged.numbers[trigger]
                ?? (staged.forgotten.contains(trigger) ? nil : state.withLock { $0.numbers[trigger] })
        }
        return number.map { EventQueue(trigger: $0) }
    }

    /// Puts an event into the queue of a trigger.
    func put(
        _ event: Delivery.Event, _ record: [UInt8], for trigger: String, in transaction: any StoreTransaction
    ) throws(Status) {
        let queue: EventQueue
        if let known = presentQueue(of: trigger) {
            queue = known
        } else {
            queue = EventQueue(trigger: try newNumber(of: trigger, in: transaction))
        }
        try queue.put(event, record, in: transaction)
        let known = state.withLock { $0.oldest[trigger] }
        staged.withLock { staged in
            staged.counts[trigger, default: 0] += 1
            staged.notified.insert(trigger)
            // What the present transaction has changed goes before what is durable.
            let oldest = staged.oldest[trigger] ?? known
            staged.oldest[trigger] = .some(min(event.version, oldest ?? .max))
        }
    }

    private func newNumber(of trigger: String, in transaction: any StoreTransaction) throws(Status) -> UInt32 {
        let counter = [Self.mark]
        let number = try transaction.get(.meta, counter).map(Self.number) ?? 1
        try transaction.put(.meta, counter, Self.bytes(number + 1))
        try transaction.put(.meta, counter + Array(trigger.utf8), Self.bytes(number))
        staged.withLock { $0.numbers[trigger] = number }
        return number
    }

    /// Events were deleted from the queue of a trigger.
    /// - Parameter oldest: the version of the first event of the queue now.
    func removed(_ count: Int, of trigger: String, oldest: Int64?) {
        staged.withLock { staged in
            staged.counts[trigger, default: 0] -= count
            staged.oldest[trigger] = .some(oldest)
        }
    }

    /// The version of the oldest event that waits; nil when none does.
    func oldest(_ trigger: String) -> Int64? { state.withLock { $0.oldest[trigger] } }

    /// Takes the number away from a trigger whose queue is empty.
    func deleteNumber(of trigger: String, in transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(.meta, [Self.mark] + Array(trigger.utf8))
        staged.withLock { staged in
            staged.forgotten.insert(trigger)
            staged.numbers[trigger] = nil
            staged.counts[trigger] = nil
            staged.deadLetters[trigger] = nil
        }
    }

    /// The transaction is durable, or undone.
    /// - Returns: the triggers that have new events.
    func ended(isDurable: Bool) -> Set<String> {
        let ended = staged.withLock { staged in
            defer { staged = Staged() }
            return staged
        }
        guard isDurable else { return [] }
        if ended.forgotten.isEmpty, ended.counts.isEmpty, ended.deadLetters.isEmpty { return [] }
        state.withLock { state in
            for name in ended.forgotten {
                state.numbers[name] = nil
                state.pending[name] = nil
                state.deadLetters[name] = nil
                state.oldest[name] = nil
            }
            for (name, number) in ended.numbers { state.numbers[name] = number }
            for (name, count) in ended.counts { state.pending[name, default: 0] += count }
            for (name, version) in ended.oldest { state.oldest[name] = version }
            for (name, count) in ended.deadLetters { state.deadLetters[name, default: 0] += count }
        }
        return ended.notified
    }
}
