import HearthModel
import Synchronization

/// A bound on the bytes that peers make the process hold: received data that cannot be processed yet, and decoded
/// requests.
///
/// A reservation is made before memory is allocated, and returned when the holder is freed. One account may use at most
/// its share. The limit of a connection shrinks with the free part of the budget: a connection may hold at most F × F /
/// B bytes, where B is the budget and F the part that is free afterwards. When n connections take all they can get,
/// about 1/n of the budget remains free, in any order of their requests, and connections that hold little still get
/// memory. Administrators may use everything that is left.
///
/// With a loan, the budget has a part of its own, and uses what is left of a pool that it shares with other budgets.
///
/// Source of the idea: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches". Their
/// threshold, which is proportional to the free memory, assumes that a queue above it drains; ours may stay full.
package final class MemoryBudget: Sendable {
    private struct State {
        var loan: MemoryLoan?
        var used = 0
        /// Used by requesters that are not administrators.
        var usedByClients = 0
        var byAccount: [UInt64: Int] = [:]
        var byConnection: [Connection: Int] = [:]
    }

    private struct Connection: Hashable {
        let account: UInt64
        let number: UInt64
    }

    package let bytesMax: Int
    private let clientsBytesMax: Int
    package let shareBytesMax: Int
    /// What a connection may hold when its account has used its share.
    package let smallBytesMax: Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - bytesMax: for all requesters together.
    ///   - clientsBytesMax: for all requesters together that are not administrators, so that clients cannot exhaust the
    ///     part of administrators; nil: seven eighths.
    ///   - shareBytesMax: for one account.
    ///   - smallBytesMax: what a connection may hold when its account has used its share. An account may be the address
    ///     of a whole network.
    ///   - loan: the part of `bytesMax` that is always available, and the source of the rest; nil: all of it is always
    ///     available.
    package init(
        bytesMax: Int, clientsBytesMax: Int? = nil, shareBytesMax: Int, smallBytesMax: Int = 0, loan: MemoryLoan? = nil
    ) {
        self.bytesMax = bytesMax
        self.clientsBytesMax = clientsBytesMax ?? bytesMax - bytesMax / 8
        self.shareBytesMax = shareBytesMax
        self.smallBytesMax = smallBytesMax
        state = Mutex(State(loan: loan))
    }

    package var usedBytes: Int { state.withLock { $0.used } }

    /// Whether more than half of the budget is in use, or more than is still available.
    package var isScarce: Bool {
        state.withLock { state in
            state.used > bytesMax / 2 || state.loan.map { state.used > $0.freeBytes(used: state.used) } ?? false
        }
    }

    /// A reservation for one holder, initially empty. It is returned when the object is freed.
    package func reservation(for requester: Requester) -> MemoryReservation {
        MemoryReservation(self, requester)
    }

    func change(_ requester: Requester, from old: Int, to new: Int) -> Bool {
        if new == old { return true }
        let key = Connection(account: requester.account, number: requester.connection)
        return state.withLock { state in
            let used = state.used + new - old
            let usedByClients = state.usedByClients + (requester.isAdministrator ? 0 : new - old)
            let account = state.byAccount[requester.account, default: 0] + new - old
            let connection = state.byConnection[key, default: 0] + new - old
            if new > old, used > bytesMax { return false }
            let isCovered = state.loan?.cover(used, isAdministrator: requester.isAdministrator) ?? true
            if new > old, !requester.isAdministrator || !isCovered {
                let loanable = state.loan?.freeBytes(used: used) ?? .max
                let free = min(bytesMax - used, clientsBytesMax - usedByClients, loanable)
                let all = Double(min(clientsBytesMax, usedByClients + free))
                guard isCovered, free >= 0, Double(connection) * all <= Double(free) * Double(free),
                    connection <= smallBytesMax
                        || Double(account) * Double(clientsBytesMax) <= Double(shareBytesMax) * all
                else {
                    state.loan?.cover(state.used, isAdministrator: requester.isAdministrator)
                    return false
                }
            }
            state.used = used
            state.usedByClients = usedByClients
            state.byAccount[requester.account] = account == 0 ? nil : account
            state.byConnection[key] = connection == 0 ? nil : connection
            return true
        }
    }
}
