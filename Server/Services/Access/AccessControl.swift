import HearthModel
import HearthStorage

/// Decides what a request may do: the one place that every front end's requests pass.
///
/// Administrators may do what their scope allows. Everybody else is judged by the security rules of the database; where there
/// are none, a server for local development is open, as Google's emulator is, and any other is closed.
final class AccessControl: Sendable {
    /// Whether texts tell what went wrong, and a database without rules is open.
    let isEmulator: Bool

    init(isEmulator: Bool) {
        self.isEmulator = isEmulator
    }

    /// Source: what the service answers, whatever the reason.
    static let denied = Status(.permissionDenied, "Missing or insufficient permissions.")

    // MARK: Administrators

    /// - Parameter message: what somebody else is told.
    func requireAdministrator(_ identity: Identity, _ message: String = "Admin authentication is required.")
        throws(Status)
    {
        if case .administrator = identity { return }
        // Nobody has said who may do what on a server for local development.
        if isEmulator { return }
        throw isEmulator ? Status(.permissionDenied, message) : Self.denied
    }
}
