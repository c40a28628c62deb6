internal import Foundation
internal import HearthModel
internal import HearthSync

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

extension Status {
    /// Any error as a status: ours keep their code, all others are UNKNOWN.
    init(error: any Error) {
        if let status = error as? Status {
            self = status
        } else {
            let error = error as NSError
            self =
                Status(firestoreError: error) ?? Status(authError: error)
                ?? Status(.unknown, error.localizedDescription)
        }
    }

    /// nil when it is none of `Auth`'s.
    private init?(authError error: NSError) {
        guard error.domain == AuthErrorDomain else { return nil }
        self.init(.unauthenticated, error.localizedDescription)
    }
}
