import HearthModel

/// A part of a budget in use. It has one owner at a time.
package final class MemoryReservation: @unchecked Sendable {
    private let budget: MemoryBudget
    private let requester: Requester
    // Guarded by the owner of the reservation.
    package private(set) var bytes = 0

    init(_ budget: MemoryBudget, _ requester: Requester) {
        self.budget = budget
        self.requester = requester
    }

    deinit { resize(to: 0) }

    /// Resizes the reservation; false, without a change, when not enough is left. Shrinking always succeeds.
    @discardableResult
    package func resize(to bytes: Int) -> Bool {
        guard budget.change(requester, from: self.bytes, to: bytes) else { return false }
        self.bytes = bytes
        return true
    }

    /// Resizes the reservation by a difference.
    @discardableResult
    package func grow(by bytes: Int) -> Bool { resize(to: self.bytes + bytes) }

    /// Moves the bytes of another reservation of the same requester and budget into this one.
    package func absorb(_ other: MemoryReservation) {
        precondition(budget === other.budget && requester == other.requester, "a reservation belongs to one requester")
        bytes += other.bytes
        other.bytes = 0
    }
}
