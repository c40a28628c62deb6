import HearthConcurrency
import HearthModel

/// The memory that the connections of one loop use for started requests: their heads, streams, and waiting input after
/// them. A head of 64 KB may cost a client only a few bytes, when it refers to entries of HTTP/2's table.
///
/// The rule is that of `MemoryBudget` between connections, without a lock: all of it belongs to the loop.
struct OpenRequests {
    private var loan: MemoryLoan
    private(set) var usedBytes = 0

    init(_ loan: MemoryLoan) { self.loan = loan }

    /// - Parameter connectionBytes: the connection's bytes including these.
    fileprivate mutating func take(_ bytes: Int, connectionBytes: Int) -> Bool {
        let used = usedBytes + bytes
        let isCovered = loan.cover(used, isAdministrator: false)
        let free = Double(loan.freeBytes(used: used))
        guard isCovered, free >= 0, Double(connectionBytes) * (Double(used) + free) <= free * free else {
            loan.cover(usedBytes, isAdministrator: false)
            return false
        }
        usedBytes = used
        return true
    }

    fileprivate mutating func give(_ bytes: Int) {
        usedBytes -= bytes
        loan.cover(usedBytes, isAdministrator: false)
    }
}

/// The part of one connection. Belongs to its loop.
struct HeldRequests {
    /// Not counted: most connections use no more.
    static let freeBytes = 4 << 10
    static let tooMany = "the server holds too many open requests"

    private let context: LoopContext
    private var bytes = 0

    init(_ context: LoopContext) { self.context = context }

    /// False, without a change, when the remaining memory is not enough; decreasing always succeeds.
    mutating func set(_ wanted: Int) -> Bool {
        let counted = wanted > Self.freeBytes ? wanted : 0
        if counted > bytes {
            guard context.openRequests.take(counted - bytes, connectionBytes: counted) else { return false }
        } else if counted < bytes {
            context.openRequests.give(bytes - counted)
        }
        bytes = counted
        return true
    }
}
