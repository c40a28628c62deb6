import HearthConcurrency

/// The work of a loop's connections by account, each of which has a part of every tick.
///
/// A connection works for `NetworkLimits.tickMicroseconds` in a tick, but one client may have hundreds of connections, and
/// a new connection of another client needs several ticks. What exceeds an account's part waits for the next ticks, in
/// order.
///
/// Belongs to the loop's thread.
struct TickShares {
    private var usedNanoseconds: [UInt64: UInt64] = [:]
    private var waiting: [UInt64: Queue<() -> Void>] = [:]
    /// The accounts of `waiting`. A dictionary has another order in each process, which a simulation could not repeat.
    private var order: [UInt64] = []

    var isEmpty: Bool { order.isEmpty }

    /// The loop begins a tick.
    mutating func beginTick() {
        if !usedNanoseconds.isEmpty { usedNanoseconds.removeAll(keepingCapacity: true) }
    }

    mutating func add(_ nanoseconds: UInt64, to account: UInt64) { usedNanoseconds[account, default: 0] += nanoseconds }

    /// Whether the account has some of its part left, and nothing of it waits.
    func admits(_ account: UInt64, limitNanoseconds: UInt64) -> Bool {
        waiting[account] == nil && usedNanoseconds[account, default: 0] < limitNanoseconds
    }

    mutating func append(_ job: @escaping () -> Void, for account: UInt64) {
        if waiting[account] == nil { order.append(account) }
        waiting[account, default: Queue()].append(job)
    }

    /// The accounts that have something to do in this tick, and how much waits for each.
    var due: [(account: UInt64, count: Int)] { order.map { ($0, waiting[$0]?.count ?? 0) } }

    /// The account's next job; nil when its part is used up.
    mutating func next(of account: UInt64, limitNanoseconds: UInt64) -> (() -> Void)? {
        guard usedNanoseconds[account, default: 0] < limitNanoseconds, let job = waiting[account]?.popFirst() else {
            return nil
        }
        if waiting[account]?.isEmpty == true {
            waiting[account] = nil
            order.removeAll { $0 == account }
        }
        return job
    }
}
