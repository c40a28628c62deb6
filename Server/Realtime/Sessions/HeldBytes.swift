import HearthConcurrency
import HearthModel

/// The part of a budget that one connection holds, beyond a few bytes that every connection may use. For one owner.
struct HeldBytes {
    private let budget: MemoryBudget
    private var reservation: MemoryReservation

    init(_ budget: MemoryBudget, for requester: Requester) {
        self.budget = budget
        reservation = budget.reservation(for: requester)
    }

    /// False when not enough is left; a smaller amount always succeeds.
    mutating func set(_ bytes: Int) -> Bool {
        let counted = bytes > Limits.realtimeUncountedBytesMax ? bytes : 0
        return counted == reservation.bytes || reservation.resize(to: counted)
    }

    /// Charges another account from now on. False when that account may not hold so much.
    mutating func move(to requester: Requester) -> Bool {
        let bytes = reservation.bytes
        reservation.resize(to: 0)
        reservation = budget.reservation(for: requester)
        return reservation.resize(to: bytes)
    }
}
