import Foundation

/// A signed-in user.
public final class User: Sendable {
    /// The user's id.
    public let uid: String
    private let current: Locked<String>
    private let auth: Auth

    var token: String { current.with { $0 } }

    init(uid: String, token: String, auth: Auth) {
        self.uid = uid
        self.auth = auth
        current = Locked(token)
    }

    func replaceToken(_ token: String) { current.with { $0 = token } }

    /// The user's token.
    /// - Parameter isForcing: whether a new token is requested.
    /// - Throws: the error of the token refresh; `AuthErrorCode.invalidCustomToken` when the new token
    ///   cannot be read, `AuthErrorCode.userMismatch` when it is of another user.
    nonisolated(nonsending) public func getIDToken(forcingRefresh isForcing: Bool = false) async throws -> String {
        try await auth.refreshedToken(of: self, forcing: isForcing)
    }
}
