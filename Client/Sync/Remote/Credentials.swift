import HearthModel

/// Who is signed in. Each has an own queue of writes on this device.
package struct ClientUser: Hashable, Sendable {
    /// nil: nobody is signed in.
    package var uid: String?

    package init(uid: String? = nil) { self.uid = uid }
    package static let unauthenticated = ClientUser()
}

/// Where the engine gets tokens from, and hears that the user changed.
package protocol CredentialsProvider: AnyObject, Sendable {
    /// The token for the next request; nil when nobody is signed in. After `invalidateToken` a fresh one.
    func token() async throws(Status) -> (user: ClientUser, token: String?)
    /// The server called the token unauthenticated.
    func invalidateToken()
    /// Calls at once with the present user, and again after each change. At most one observer; nil ends it.
    func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?)
}

/// Nobody, ever.
package final class EmptyCredentials: CredentialsProvider {
    package init() {}
    package func token() async throws(Status) -> (user: ClientUser, token: String?) { (.unauthenticated, nil) }
    package func invalidateToken() {}
    package func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?) { changed?(.unauthenticated) }
}
