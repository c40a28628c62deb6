import HearthModel

/// An event of a stream. No event follows `closed`.
package enum StreamEvent<Response: Sendable>: Sendable {
    /// The connection is established and accepts requests. It comes once, before all other events except `closed`.
    case opened
    case response(Response)
    /// The end of the stream for any reason: the server's status, or `UNAVAILABLE` when the connection broke.
    case closed(Status)
}
