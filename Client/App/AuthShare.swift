internal import Foundation

/// One database's share of an `Auth`, which several may watch.
package final class AuthShare: AuthTokenProvider {
    private let auth: Auth

    package init(_ auth: Auth) { self.auth = auth }

    package func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken? {
        try await auth.token(forcingRefresh: isForcingRefresh)
    }

    package func observeUser(_ changed: (@Sendable (String?) -> Void)?) { auth.observeUser(changed, by: self) }
}
