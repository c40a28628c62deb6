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
    }

    /// What the present transaction has put; of the writer's thread.
    private struct Staged {
        var numbers: [String: UInt32] = [:]
        var counts: [String: Int] = [:]
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

    func pending(_ trigger: String) -> Int { state.withLock { $0.pending[trigger] ?? 0 } }

    /// Events were removed from a queue, which is durable, or put into it again.
    func changePending(_ trigger: String, by count: Int) {
        state.withLock { state in
            if state.numbers[trigger] != nil { state.pending[trigger, default: 0] += count }
        }
    }

    // MARK: On the writer's thread

    /// Puts an event into the queue of a trigger. `ended` must follow.
    func put(
        _ event: Delivery.Event, _ record: [UInt8], for trigger: String, in transaction: any StoreTransaction
    ) throws(Status) {
        let number: UInt32
        if let known = state.withLock({ $0.numbers[trigger] }) ?? staged.withLock({ $0.numbers[trigger] }) {
            number = known
        } else {
            number = try newNumber(of: trigger, in: transaction)
        }
        try EventQueue(trigger: number).put(event, record, in: transaction)
        staged.withLock { $0.counts[trigger, default: 0] += 1 }
    }

    private func newNumber(of trigger: String, in transaction: any StoreTransaction) throws(Status) -> UInt32 {
        let counter = [Self.mark]
        let number = try transaction.get(.meta, counter).map(Self.number) ?? 1
        try transaction.put(.meta, counter, Self.bytes(number + 1))
        try transaction.put(.meta, counter + Array(trigger.utf8), Self.bytes(number))
        staged.withLock { $0.numbers[trigger] = number }
        return number
    }

    /// Deletes the number of a trigger that has no events any more.
    func deleteNumber(of trigger: String, in transaction: any StoreTransaction) throws(Status) {
        try transaction.delete(.meta, [Self.mark] + Array(trigger.utf8))
    }

    /// `deleteNumber` is durable.
    func forgot(_ trigger: String) {
        state.withLock { state in
            state.numbers[trigger] = nil
            state.pending[trigger] = nil
        }
    }

    /// The transaction of the last `put`s is durable, or undone.
    /// - Returns: the triggers that have new events.
    func ended(isDurable: Bool) -> [String] {
        let ended = staged.withLock { staged in
            defer { staged = Staged() }
            return staged
        }
        guard isDurable, !ended.counts.isEmpty else { return [] }
        state.withLock { state in
            for (name, number) in ended.numbers { state.numbers[name] = number }
            for (name, count) in ended.counts { state.pending[name, default: 0] += count }
        }
        return Array(ended.counts.keys)
    }
}
