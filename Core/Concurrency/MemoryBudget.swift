import HearthModel
import Synchronization

/// Bytes that peers make the process hold: what was received and can't be worked on yet, and what requests become when
/// they are decoded.
///
/// A reservation is made before memory is taken, and returned when the holder is freed. One account may have at most its
/// share; administrators may have all that is left.
package final class MemoryBudget: Sendable {
    private struct State {
        var used = 0
        var byAccount: [UInt64: Int] = [:]
    }

    package let bytesMax: Int
    package let shareBytesMax: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - bytesMax: for everybody together.
    ///   - shareBytesMax: for one account.
    package init(bytesMax: Int, shareBytesMax: Int) {
        self.bytesMax = bytesMax
        self.shareBytesMax = shareBytesMax
    }

    package var usedBytes: Int { state.withLock { $0.used } }

    /// What one holder has reserved, at first nothing; given back when the object is freed.
    package func reservation(for requester: Requester) -> MemoryReservation {
        MemoryReservation(self, requester)
    }

    fileprivate func change(_ requester: Requester, from old: Int, to new: Int) -> Bool {
        state.withLock { state in
            let account = state.byAccount[requester.account, default: 0] + new - old
            if new > old {
                if state.used + new - old > bytesMax { return false }
                if account > shareBytesMax, !requester.isAdministrator { return false }
            }
            state.used += new - old
            state.byAccount[requester.account] = account == 0 ? nil : account
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
}
