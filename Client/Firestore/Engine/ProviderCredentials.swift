internal import Foundation
internal import HearthModel
internal import HearthSync

/// Adapts a token provider to the engine.
final class ProviderCredentials: CredentialsProvider {
    private let provider: any AuthTokenProvider
    /// Whether the server rejected the last token.
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
            // The next attempt requests a new token again.
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
    /// Converts any error to a status: our errors retain their code, all others become `UNKNOWN`.
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

    /// nil for an error that is not from `Auth`.
    private init?(authError error: NSError) {
        guard error.domain == AuthErrorDomain else { return nil }
        self.init(.unauthenticated, error.localizedDescription)
    }
}
