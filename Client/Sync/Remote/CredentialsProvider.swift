import HearthModel

/// The engine's source of tokens and of user changes.
package protocol CredentialsProvider: AnyObject, Sendable {
    /// The token for the next request; nil when nobody is signed in. After `invalidateToken` a fresh one.
    func token() async throws(Status) -> (user: ClientUser, token: String?)
    /// The server rejected the token with `UNAUTHENTICATED`.
    func invalidateToken()
    /// Calls at once with the present user, and again after each change. At most one observer; nil removes it.
    func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?)
}
