import HearthConcurrency
import HearthModel

/// What one connection holds of a budget, beyond a few bytes that everybody may. For one owner.
struct HeldBytes {
    private let budget: MemoryBudget
    private var reservation: MemoryReservation

    init(_ budget: MemoryBudget, for requester: Requester) {
        self.budget = budget
        reservation = budget.reservation(for: requester)
    }

    /// False when there isn't so much left; less always works.
    mutating func set(_ bytes: Int) -> Bool {
        let counted = bytes > Limits.realtimeUncountedBytesMax ? bytes : 0
        return counted == reservation.bytes || reservation.resize(to: counted)
    }

    /// The connection is on another account from now on. False when that may not hold so much.
    mutating func move(to requester: Requester) -> Bool {
        let bytes = reservation.bytes
        reservation.resize(to: 0)
        reservation = budget.reservation(for: requester)
        return reservation.resize(to: bytes)
    }
}
