import HearthModel

/// The signed-in user. Each user has their own queue of writes on this device.
package struct ClientUser: Hashable, Sendable {
    /// nil: nobody is signed in.
    package var uid: String?

    package init(uid: String? = nil) { self.uid = uid }
    package static let unauthenticated = ClientUser()
}

/// The engine's source of tokens and of user changes.
package protocol CredentialsProvider: AnyObject, Sendable {
    /// The token for the next request; nil when nobody is signed in. After `invalidateToken` a fresh one.
    func token() async throws(Status) -> (user: ClientUser, token: String?)
    /// The server rejected the token with `UNAUTHENTICATED`.
    func invalidateToken()
    /// Calls at once with the present user, and again after each change. At most one observer; nil removes it.
    func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?)
}

/// Credentials without a user.
package final class EmptyCredentials: CredentialsProvider {
    package init() {}
    package func token() async throws(Status) -> (user: ClientUser, token: String?) { (.unauthenticated, nil) }
    package func invalidateToken() {}
    package func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?) { changed?(.unauthenticated) }
}
