/// A source of tokens for databases. `Auth` is one. Programs with another login implement this protocol and assign it
/// to the database's `authTokenProvider` before the first use.
public protocol AuthTokenProvider: AnyObject, Sendable {
    /// The token for the next request; nil when no user is signed in.
    /// - Parameter isForcingRefresh: the server rejected the last token: fetch a new one, even if the last one seems
    ///   valid.
    /// - Returns: the user's id and token; nil when no user is signed in: the request is then sent without credentials.
    /// - Throws: any error; the request then fails with it. Throw `CancellationError` when the task is cancelled.
    func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken?

    /// Calls at once with the present user's id (nil when no user is signed in), and again after each change of the
    /// user. While the token belongs to another user than the last reported one, nothing is sent on the streams: writes
    /// of one user must not be sent with the token of another. A new observer replaces the previous one; nil removes
    /// it. Databases with the same provider share one observer.
    /// - Parameter changed: receives the user's id; nil when no user is signed in. It may be called on any thread.
    func observeUser(_ changed: (@Sendable (String?) -> Void)?)
}
