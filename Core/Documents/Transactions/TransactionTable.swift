import HearthConcurrency
import HearthModel
import Synchronization

/// The open transactions of a database, and the records of those that ended a short while ago.
final class TransactionTable: Sendable {
    /// The state that a retry inherits from an earlier attempt.
    private struct Ended {
        var age: UInt64
        var isReadOnly: Bool
    }

    private struct State {
        var open: [[UInt8]: Transaction] = [:]
        var ended: [[UInt8]: Ended] = [:]
        /// The ids in `ended`, oldest first, from `firstEnded` on.
        var endedOrder: [(id: [UInt8], nanoseconds: UInt64)] = []
        var firstEnded = 0
        var nextOwner: LockTable.Owner = 1
        var holders = TransactionHolders()

        mutating func close(_ id: [UInt8], now: UInt64) -> Transaction? {
            guard let transaction = open.removeValue(forKey: id) else { return nil }
            holders.remove(transaction.requester, open: open)
            end(id, transaction, now: now)
            return transaction
        }

        private mutating func end(_ id: [UInt8], _ transaction: Transaction, now: UInt64) {
            ended[id] = Ended(age: transaction.age, isReadOnly: transaction.isReadOnly)
            endedOrder.append((id, now))
            if endedOrder.count - firstEnded > Limits.transactionsRememberedMax { forgetOldest() }
        }

        mutating func forgetOldest() {
            ended[endedOrder[firstEnded].id] = nil
            firstEnded += 1
            if firstEnded > 1024, firstEnded * 2 > endedOrder.count {
                endedOrder.removeFirst(firstEnded)
                firstEnded = 0
            }
        }
    }

    private let state = Mutex(State())
    private let clock: any Clock
    private let salt: UInt64
    private let readSets: MemoryBudget

    /// - Parameter readSets: memory for the reads of transactions of this and other databases.
    init(clock: any Clock, database: DatabaseName, readSets: MemoryBudget) {
        self.clock = clock
        self.readSets = readSets
        salt = Self.hash(Array(database.string.utf8), seed: 0x9E37_79B9_7F4A_7C15)
    }

    static let expired = Status.aborted("The referenced transaction has expired or is no longer valid.")

    var openCount: Int { state.withLock { $0.open.count } }

    func nextOwner() -> LockTable.Owner {
        state.withLock { state in
            defer { state.nextOwner += 1 }
            return state.nextOwner
        }
    }

    /// - Parameters:
    ///   - readTime: of a read-only transaction; nil for a read-write one.
    ///   - concurrency: of a read-write transaction.
    /// - Returns: the new transaction, and the owner of one that was ended for it, when too many were open.
    /// - Throws: INVALID_ARGUMENT for a `retry` id that was never issued; RESOURCE_EXHAUSTED when too many are open.
    func begin(
        readTime: Timestamp?, retry: [UInt8]?, concurrency: TransactionConcurrency, requester: Requester
    ) throws(Status) -> (id: [UInt8], transaction: Transaction, ended: LockTable.Owner?) {
        if let retry, !retry.isEmpty, !isWellFormed(retry) { throw .invalidArgument("Invalid transaction.") }
        let owner = nextOwner()
        let now = clock.monotonicNanoseconds()
        let id = newID(owner)
        let (transaction, ended) = try state.withLock { state throws(Status) in
            let earlier = retry.flatMap { retry in
                state.ended[retry] ?? state.open[retry].map { Ended(age: $0.age, isReadOnly: $0.isReadOnly) }
            }
            if let earlier, earlier.isReadOnly { throw .invalidArgument("Cannot retry a read-only transaction.") }
            var ended: Transaction?
            if state.open.count >= Limits.transactionsOpenMax {
                guard let victim = state.holders.victim(for: requester, open: state.open) else {
                    throw .resourceExhausted("Too many transactions are open (\(Limits.transactionsOpenMax)).")
                }
                ended = state.close(victim, now: now)
            }
            let transaction = Transaction(
                owner: owner, age: earlier?.age ?? owner, isReadOnly: readTime != nil,
                isLocking: readTime == nil && concurrency == .pessimistic, readTime: readTime, requester: requester,
                startedNanoseconds: now, usedNanoseconds: now)
            state.open[id] = transaction
            state.holders.add(id, requester)
            return (transaction, ended?.owner)
        }
        return (id, transaction, ended)
    }

    /// The open transaction with an id, which counts as used now.
    /// - Throws: INVALID_ARGUMENT for an id that was never issued, ABORTED for one that has ended.
    func use(_ id: [UInt8]) throws(Status) -> Transaction {
        let now = clock.monotonicNanoseconds()
        let found = state.withLock { state in
            state.open[id]?.usedNanoseconds = now
            state.open[id]?.isUsed = true
            return state.open[id]
        }
        if let found { return found }
        throw unknown(id)
    }

    private func unknown(_ id: [UInt8]) -> Status {
        isWellFormed(id) ? Self.expired : .invalidArgument("Invalid transaction.")
    }

    /// Reserves memory for a transaction's next read, on the account of the requester that began it. Must be called
    /// before the first lock is taken: waiting calls hold memory as well.
    /// - Returns: nil while so little is read that it isn't counted.
    /// - Throws: RESOURCE_EXHAUSTED when the requester has used its share.
    func reserve(_ resources: [LockTable.Resource], for transaction: Transaction) throws(Status) -> MemoryReservation? {
        let known = transaction.readSet.bytes
        func counted(_ bytes: Int) -> Int { max(0, bytes - Limits.readSetUncountedBytes) }
        let more = counted(known + transaction.readSet.bytes(for: resources)) - counted(known)
        if more == 0 { return nil }
        let reservation = readSets.reservation(for: transaction.requester)
        if reservation.grow(by: more) { return reservation }
        throw .resourceExhausted("The transactions of this client have read too much that is not committed yet.")
    }

    /// Adds a read to the transaction.
    /// - Parameters:
    ///   - reserved: memory for it.
    ///   - version: the version that the read and all before it show.
    ///   - readTime: of that state.
    ///   - revision: of the transaction when that was determined.
    /// - Returns: false when another read came between; nothing is noted then.
    func note(
        _ resources: [LockTable.Resource], reserved: MemoryReservation?, of id: [UInt8], at version: Int64,
        _ readTime: Timestamp, revision: Int
    ) throws(Status) -> Bool {
        let isNoted: Bool? = state.withLock { state in
            // Removed from the table while it changes, so that the read set isn't copied.
            guard var transaction = state.open.removeValue(forKey: id) else { return nil }
            defer { state.open[id] = transaction }
            guard transaction.revision == revision else { return false }
            transaction.revision += 1
            transaction.version = version
            transaction.readTime = readTime
            transaction.readSet.insert(resources, reserved: reserved)
            return true
        }
        guard let isNoted else { throw unknown(id) }
        return isNoted
    }

    /// Ends a transaction; its id stays known, so that a retry can name it.
    /// - Throws: INVALID_ARGUMENT for an id that was never issued, ABORTED for one that has ended.
    func finish(_ id: [UInt8]) throws(Status) -> Transaction {
        let now = clock.monotonicNanoseconds()
        let found = state.withLock { $0.close(id, now: now) }
        if let found { return found }
        throw unknown(id)
    }

    /// Ends transactions that are unused or open for too long, and forgets those that ended long ago.
    /// - Returns: the owners of the transactions that were ended.
    func expire() -> [LockTable.Owner] {
        let now = clock.monotonicNanoseconds()
        func isOver(_ start: UInt64, _ seconds: Int) -> Bool { now >= start + UInt64(seconds) * 1_000_000_000 }
        return state.withLock { state in
            let over = state.open.filter { _, transaction in
                isOver(transaction.startedNanoseconds, Limits.transactionTotalSecondsMax)
                    || isOver(transaction.usedNanoseconds, Limits.transactionIdleSecondsMax)
            }
            for id in over.keys { _ = state.close(id, now: now) }
            while state.firstEnded < state.endedOrder.count,
                isOver(state.endedOrder[state.firstEnded].nanoseconds, Limits.transactionTotalSecondsMax)
            {
                state.forgetOldest()
            }
            return over.values.map(\.owner)
        }
    }

    // MARK: Ids

    /// Sixteen bytes, half of them random, and a checksum that distinguishes ids of this database from garbage, also
    /// after they are forgotten or the server was restarted.
    private func newID(_ owner: LockTable.Owner) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        var id: [UInt8] = []
        IndexValue.appendBigEndian(generator.next(), to: &id)
        IndexValue.appendBigEndian(owner, to: &id)
        IndexValue.appendBigEndian(Self.hash(id, seed: salt), to: &id)
        return id
    }

    func isWellFormed(_ id: [UInt8]) -> Bool {
        id.count == 24 && IndexValue.readBigEndian(id[16...]) == Self.hash(Array(id[..<16]), seed: salt)
    }

    /// FNV-1a, with a seed.
    private static func hash(_ bytes: [UInt8], seed: UInt64) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325 ^ seed) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    }
}
