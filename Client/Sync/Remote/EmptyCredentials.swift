import HearthModel

/// Credentials without a user.
package final class EmptyCredentials: CredentialsProvider {
    package init() {}
    package func token() async throws(Status) -> (user: ClientUser, token: String?) { (.unauthenticated, nil) }
    package func invalidateToken() {}
    package func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?) { changed?(.unauthenticated) }
}
