import HearthConcurrency
import HearthModel

/// What one connection makes us hold of input that can't be worked on yet: unfinished bodies and messages, and what a
/// handler has not taken. Belongs to the connection's loop.
///
/// A little is free, so that requests which come in one piece cost no lock; the rest is reserved in steps.
final class HeldInput {
    /// With the most connections that a server takes, 80 MB.
    static let freeBytes = 4 << 10
    private static let stepBytes = 16 << 10
    /// What stays reserved for more to come, for as long as anything is held.
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

    /// Counts bytes that are held from now on. False, and nothing counted, when it would be too much.
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

    /// Bytes that are not held any more.
    func give(_ count: Int) {
        bytes -= count
        if bytes == 0 {
            reservation = nil
        } else if reservedBytes > bytes + Self.spareBytes {
            reservation?.resize(to: bytes + Self.stepBytes)
        }
    }

    /// Somebody has shown on this connection who they are: administrators aren't refused for what clients hold.
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
