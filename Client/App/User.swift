internal import Foundation

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

    /// The user's token. Without a forced refresh it makes no request and works offline.
    /// - Parameter isForcing: whether to fetch a new token with the closure of `Auth.setTokenRefresh(_:)`. Without such
    ///   a closure the present token is returned.
    /// - Returns: a JSON Web Token.
    /// - Throws: the error of the closure of `Auth.setTokenRefresh(_:)`; `AuthErrorCode.invalidCustomToken` when the
    ///   new token cannot be read, `AuthErrorCode.userMismatch` when it is of another user. `CancellationError` when
    ///   the task is cancelled while a new token is fetched.
    nonisolated(nonsending) public func getIDToken(forcingRefresh isForcing: Bool = false) async throws -> String {
        try await auth.refreshedToken(of: self, forcing: isForcing)
    }

    /// The user's token. It makes no request and works offline.
    /// - Parameter completion: runs on the main queue with a JSON Web Token.
    public func getIDToken(completion: ((String?, (any Error)?) -> Void)?) {
        getIDTokenForcingRefresh(false, completion: completion)
    }

    /// The user's token.
    /// - Parameters:
    ///   - forceRefresh: whether to fetch a new token with the closure of `Auth.setTokenRefresh(_:)`. Without such a
    ///     closure the present token is returned.
    ///   - completion: runs on the main queue with a JSON Web Token, or with the error that
    ///     `getIDToken(forcingRefresh:)` throws.
    public func getIDTokenForcingRefresh(_ forceRefresh: Bool, completion: ((String?, (any Error)?) -> Void)?) {
        let carried = Carried(completion)
        Task {
            let result: Result<String, any Error>
            do { result = .success(try await getIDToken(forcingRefresh: forceRefresh)) } catch {
                result = .failure(error)
            }
            DispatchQueue.main.async {
                switch result {
                case .success(let token): carried.value?(token, nil)
                case .failure(let error): carried.value?(nil, error)
                }
            }
        }
    }
}
