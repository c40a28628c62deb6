/// An error of the wire protocol.
struct WireFailure: Error, Equatable, Sendable {
    /// `permission_denied`, `datastale`, `unavailable`, `write_canceled`, …
    var status: String
    /// The server's message; may be empty.
    var message: String

    init(_ status: String, _ message: String = "") {
        self.status = status
        self.message = message
    }

    static let permissionDenied = "permission_denied"
    static let staleData = "datastale"
    /// The connection was lost after the write had been sent; the server may have made it.
    static let disconnected = "disconnect"
    static let cancelled = WireFailure("write_canceled", "Write cancelled by user")
    static let overriddenBySet = WireFailure("set")
    static let maxRetries = WireFailure("maxretry")
    static let offline = WireFailure("offline", "Client is offline.")
    static let tooLarge = WireFailure("too_big", "The write is larger than the 16 MiB of one request.")
    static let removed = WireFailure("observer_removed", "The observer was removed before it received an event.")
    /// A waiting write may be on disk, and is sent when the database is used again.
    static let closed = WireFailure("unavailable", "The database was closed with its app.")
}
