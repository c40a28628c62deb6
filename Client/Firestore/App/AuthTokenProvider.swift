internal import HearthModel
internal import HearthSync

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

/// Gives Firestore its tokens. `Auth` is one; programs with a login of their own write another and set it as
/// `Firestore.authTokenProvider` before the first use.
public protocol AuthTokenProvider: AnyObject, Sendable {
    /// The token for the next request; nil when nobody is signed in.
    /// - Parameter isForcingRefresh: the server refused the last one: fetch a new one, even if it seems to be valid still.
    func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken?

    /// Calls at once with the present user's id, nil when nobody is signed in, and again after each change of the user.
    /// Another observer replaces the first; nil ends it.
    func observeUser(_ changed: (@Sendable (String?) -> Void)?)
}

/// A provider as the engine sees it.
final class ProviderCredentials: CredentialsProvider {
    private let provider: any AuthTokenProvider
    /// Whether the server refused the last token.
    private let isRefused = Locked(false)

    init(_ provider: any AuthTokenProvider) { self.provider = provider }

    func token() async throws(Status) -> (user: ClientUser, token: String?) {
        let isForcing = isRefused.with { refused in
            defer { refused = false }
            return refused
        }
        do {
            guard let token = try await provider.token(forcingRefresh: isForcing) else {
                return (.unauthenticated, nil)
            }
            return (ClientUser(uid: token.uid), token.token)
        } catch {
            // Asked for anew at the next try.
            if isForcing { isRefused.with { $0 = true } }
            throw Status(error: error)
        }
    }

    func invalidateToken() { isRefused.with { $0 = true } }

    func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?) {
        guard let changed else { return provider.observeUser(nil) }
        provider.observeUser { uid in changed(ClientUser(uid: uid)) }
    }
}
