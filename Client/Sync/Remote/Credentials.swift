import HearthModel

/// Who is signed in. Each has an own queue of writes on this device.
public struct ClientUser: Hashable, Sendable {
    /// nil: nobody is signed in.
    public var uid: String?

    public init(uid: String? = nil) { self.uid = uid }
    public static let unauthenticated = ClientUser()
}

/// Where the engine gets tokens from, and hears that the user changed.
public protocol CredentialsProvider: AnyObject, Sendable {
    /// The token for the next request; nil when nobody is signed in. After `invalidateToken` a fresh one.
    func token() async throws(Status) -> (user: ClientUser, token: String?)
    /// The server called the token unauthenticated.
    func invalidateToken()
    /// Calls at once with the present user, and again after each change. At most one observer; nil ends it.
    func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?)
}

/// Nobody, ever.
public final class EmptyCredentials: CredentialsProvider {
    public init() {}
    public func token() async throws(Status) -> (user: ClientUser, token: String?) { (.unauthenticated, nil) }
    public func invalidateToken() {}
    public func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?) { changed?(.unauthenticated) }
}
