import HearthConcurrency
import HearthModel

/// The input of one connection that the server must hold: unfinished bodies and messages, and input that a handler has
/// not consumed. Belongs to the connection's loop.
///
/// A small amount is free, so that requests in one piece need no lock; the rest is reserved in steps.
final class HeldInput {
    /// With the maximum number of connections of a server, 80 MB.
    static let freeBytes = 4 << 10
    private static let stepBytes = 16 << 10
    /// Reserved for more input, as long as any input is held.
    private static let spareBytes = 256 << 10

    private let budget: MemoryBudget
    private let address: String
    private let connection: UInt64
    private var isAdministrator = false
    private var reservation: MemoryReservation?
    private(set) var bytes = 0

    init(_ budget: MemoryBudget, address: String, connection: UInt64) {
        self.budget = budget
        self.address = address
        self.connection = connection
    }

    /// Counts bytes that are held from now on. False, without counting, when they would exceed the limit.
    func take(_ count: Int) -> Bool {
        let wanted = bytes + count
        if wanted > Self.freeBytes, wanted > reservedBytes {
            let reservation = reservation ?? budget.reservation(for: requester)
            self.reservation = reservation
            let step = (wanted + Self.stepBytes - 1) / Self.stepBytes * Self.stepBytes
            guard reservation.resize(to: step) || reservation.resize(to: wanted) else { return false }
        }
        bytes = wanted
        return true
    }

    /// Releases bytes.
    func give(_ count: Int) {
        bytes -= count
        if bytes == 0 {
            reservation = nil
        } else if reservedBytes > bytes + Self.spareBytes {
            reservation?.resize(to: bytes + Self.stepBytes)
        }
    }

    /// The peer has authenticated on this connection: administrators are not limited by the memory that clients hold.
    func identified(_ requester: Requester) {
        guard requester.isAdministrator, !isAdministrator else { return }
        isAdministrator = true
        guard let old = reservation else { return }
        let new = budget.reservation(for: self.requester)
        let size = old.bytes
        old.resize(to: 0)
        new.resize(to: size)
        reservation = new
    }

    private var reservedBytes: Int { reservation?.bytes ?? 0 }

    private var requester: Requester {
        isAdministrator ? .administrator(connection: connection) : .nobody(at: address, connection: connection)
    }
}
