import HearthModel
import Synchronization

/// How a transaction was begun. Source: google.firestore.v1.TransactionOptions.
public enum TransactionMode: Sendable {
    /// - Parameter retry: the id of an earlier attempt, whose age the new one inherits.
    case readWrite(retry: [UInt8]?)
    /// - Parameter readTime: nil for the time of the beginning.
    case readOnly(readTime: Timestamp?)
}

/// A transaction that is open, or was until recently.
struct Transaction: Sendable {
    enum Phase: Sendable {
        case open
        case finished
    }

    var owner: LockTable.Owner
    var age: UInt64
    var isReadOnly: Bool
    /// All reads show the state at this version; nil before the first read of a read-write transaction.
    var version: Int64?
    var readTime: Timestamp?
    var readSet = ReadSet()
    var phase = Phase.open
    var startedNanoseconds: UInt64
    var usedNanoseconds: UInt64
}

/// The open transactions of a database, and those that ended a short while ago.
final class TransactionTable: Sendable {
    private struct State {
        var transactions: [[UInt8]: Transaction] = [:]
        var openCount = 0
        var nextOwner: LockTable.Owner = 1
    }

    private let state = Mutex(State())
    private let clock: any Clock
    private let salt: UInt64

    init(clock: any Clock, database: DatabaseName) {
        self.clock = clock
        salt = Self.hash(Array(database.text.utf8), seed: 0x9E37_79B9_7F4A_7C15)
    }

    static let expired = Status.aborted("The referenced transaction has expired or is no longer valid.")

    func nextOwner() -> LockTable.Owner {
        state.withLock { state in
            defer { state.nextOwner += 1 }
            return state.nextOwner
        }
    }

    /// - Throws: INVALID_ARGUMENT for a `retry` id that was never given out; RESOURCE_EXHAUSTED when too many are open.
    func begin(isReadOnly: Bool, retry: [UInt8]?) throws(Status) -> (id: [UInt8], transaction: Transaction) {
        if let retry, !retry.isEmpty, !isWellFormed(retry) { throw .invalidArgument("Invalid transaction.") }
        let owner = nextOwner()
        let now = clock.monotonicNanoseconds()
        let id = newID(owner)
        let result: Result<Transaction, Status> = state.withLock { state in
            if state.openCount >= Limits.transactionsOpenMax {
                return .failure(.resourceExhausted("Too many transactions are open (\(Limits.transactionsOpenMax))."))
            }
            if let retry, state.transactions[retry]?.isReadOnly ?? false {
                return .failure(.invalidArgument("Cannot retry a read-only transaction."))
            }
            let age = retry.flatMap { state.transactions[$0]?.age } ?? owner
            let transaction = Transaction(
                owner: owner, age: age, isReadOnly: isReadOnly, startedNanoseconds: now, usedNanoseconds: now)
            state.transactions[id] = transaction
            state.openCount += 1
            return .success(transaction)
        }
        return (id, try result.get())
    }

    /// The open transaction with an id, which counts as used now.
    /// - Throws: INVALID_ARGUMENT for an id that was never given out, ABORTED for one that is over.
    func use(_ id: [UInt8]) throws(Status) -> Transaction {
        let now = clock.monotonicNanoseconds()
        let found: Transaction? = state.withLock { state in
            guard var transaction = state.transactions[id], transaction.phase == .open else { return nil }
            transaction.usedNanoseconds = now
            state.transactions[id] = transaction
            return transaction
        }
        if let found { return found }
        throw isWellFormed(id) ? Self.expired : .invalidArgument("Invalid transaction.")
    }

    func update(_ id: [UInt8], _ body: (inout Transaction) -> Void) {
        state.withLock { state in
            guard var transaction = state.transactions.removeValue(forKey: id) else { return }
            body(&transaction)
            state.transactions[id] = transaction
        }
    }

    /// Ends a transaction; its id stays known, so that it is told from garbage and can be named for a retry.
    func finish(_ id: [UInt8]) {
        state.withLock { state in
            guard var transaction = state.transactions[id], transaction.phase == .open else { return }
            transaction.phase = .finished
            transaction.readSet = ReadSet()
            state.transactions[id] = transaction
            state.openCount -= 1
        }
    }

    /// Ends what is unused or open for too long, and forgets what ended long ago.
    /// - Returns: the owners of the transactions that were ended.
    func expire() -> [LockTable.Owner] {
        let now = clock.monotonicNanoseconds()
        func isOver(_ start: UInt64, _ seconds: Int) -> Bool { now >= start + UInt64(seconds) * 1_000_000_000 }
        return state.withLock { state in
            var ended: [LockTable.Owner] = []
            for (id, transaction) in state.transactions {
                let isTooOld = isOver(transaction.startedNanoseconds, Limits.transactionTotalSecondsMax)
                if transaction.phase == .open {
                    guard isTooOld || isOver(transaction.usedNanoseconds, Limits.transactionIdleSecondsMax) else {
                        continue
                    }
                    ended.append(transaction.owner)
                    state.openCount -= 1
                    var over = transaction
                    over.phase = .finished
                    over.readSet = ReadSet()
                    state.transactions[id] = over
                } else if isTooOld {
                    state.transactions[id] = nil
                }
            }
            return ended
        }
    }

    var openCount: Int { state.withLock { $0.openCount } }

    // MARK: Ids

    /// Sixteen bytes, half of them random, and a check by which ids of this database are told from garbage, also after
    /// they are forgotten or the server was started anew.
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
