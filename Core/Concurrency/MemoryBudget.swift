import HearthModel
import Synchronization

/// Bytes that peers make the process hold: what was received and can't be worked on yet, and what requests become when
/// they are decoded.
///
/// A reservation is made before memory is taken, and returned when the holder is freed. One account may have at most its
/// share, and a connection the less the less is free: of what it leaves free at most the part that this is of all. So n
/// connections that take as much as they get leave about an nth of the budget, whatever their order, and there is room
/// for whoever holds little. Administrators may have all that is left.
///
/// With a loan it has a part of its own, and besides what is left of a pool that it shares with other budgets.
///
/// Source of the idea: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches". Their
/// threshold, which is in proportion to what is free, supposes that a queue above it drains; ours may stay.
package final class MemoryBudget: Sendable {
    private struct State {
        var loan: MemoryLoan?
        var used = 0
        /// By those who aren't administrators.
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
    /// What a connection may hold although its account has its share.
    package let smallBytesMax: Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - bytesMax: for everybody together.
    ///   - clientsBytesMax: for all together who aren't administrators, whom nobody refuses for what clients hold; nil: seven
    ///     eighths.
    ///   - shareBytesMax: for one account.
    ///   - smallBytesMax: what a connection may have although its account, which may be the address of a whole network,
    ///     has its share.
    ///   - loan: what of `bytesMax` it has in any case, and where the rest comes from; nil: all is its own.
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

    /// Whether more than half of it is in use, or more than could still be had.
    package var isScarce: Bool {
        state.withLock { state in
            state.used > bytesMax / 2 || state.loan.map { state.used > $0.freeBytes(used: state.used) } ?? false
        }
    }

    /// What one holder has reserved, at first nothing; given back when the object is freed.
    package func reservation(for requester: Requester) -> MemoryReservation {
        MemoryReservation(self, requester)
    }

    fileprivate func change(_ requester: Requester, from old: Int, to new: Int) -> Bool {
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

/// A part of a budget in use. For one owner at a time.
package final class MemoryReservation: @unchecked Sendable {
    private let budget: MemoryBudget
    private let requester: Requester
    // Belongs to the owner of the reservation.
    package private(set) var bytes = 0

    fileprivate init(_ budget: MemoryBudget, _ requester: Requester) {
        self.budget = budget
        self.requester = requester
    }

    deinit { resize(to: 0) }

    /// Makes the reservation larger or smaller; false, and no change, when there isn't so much left. Smaller always works.
    @discardableResult
    package func resize(to bytes: Int) -> Bool {
        guard budget.change(requester, from: self.bytes, to: bytes) else { return false }
        self.bytes = bytes
        return true
    }

    /// The same by a difference.
    @discardableResult
    package func grow(by bytes: Int) -> Bool { resize(to: self.bytes + bytes) }

    /// Takes over what another reservation of the same requester in the same budget has, which has nothing then.
    package func absorb(_ other: MemoryReservation) {
        precondition(budget === other.budget && requester == other.requester, "a reservation belongs to one requester")
        bytes += other.bytes
        other.bytes = 0
    }
}
