/// Who is signed in, and how he shows it to the server.
public struct AuthToken: Hashable, Sendable {
    /// Names the queue of writes on this device: each user has his own.
    public var uid: String
    /// Sent as `Authorization: Bearer …`.
    public var token: String

    public init(uid: String, token: String) {
        self.uid = uid
        self.token = token
    }
}

/// Gives a database its tokens. `Auth` is one; programs with a login of their own write another and set it as the
/// database's `authTokenProvider` before the first use.
public protocol AuthTokenProvider: AnyObject, Sendable {
    /// The token for the next request; nil when nobody is signed in.
    /// - Parameter isForcingRefresh: the server refused the last one: fetch a new one, even if it seems to be valid still.
    func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken?

    /// Calls at once with the present user's id, nil when nobody is signed in, and again after each change of the user.
    /// While the token is of another user than the one reported here, nothing is sent over the streams: writes of one user
    /// must not go out in the name of another. Another observer replaces the first; nil ends it. Databases that have the
    /// same provider share one observer.
    func observeUser(_ changed: (@Sendable (String?) -> Void)?)
}
