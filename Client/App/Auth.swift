public import Foundation
internal import HearthConcurrency
internal import HearthModel

/// Signs users in with tokens from another source: your own server, or Hearth's tool. It has no passwords.
///
/// Each app has one `Auth`. The app's databases get their tokens from it.
public final class Auth: AuthTokenProvider, Sendable {
    private struct State {
        var user: User?
        var tokenObservers: [ObjectIdentifier: @Sendable (String?) -> Void] = [:]
        var stateObservers: [Int: Carried<(Auth, User?) -> Void>] = [:]
        var nextHandle = 1
    }

    private static let instances = Locked<[ObjectIdentifier: Auth]>([:])

    private let state = Locked(State())
    private let refreshing = Locked<(@Sendable () async throws -> String)?>(nil)
    /// The app of this instance. The app has no reference to it.
    public let app: FirebaseApp

    private init(app: FirebaseApp) { self.app = app }

    /// The `Auth` of the default app. The program ends when the app is not configured.
    /// - Returns: the instance of the default app; always the same one until the app is deleted.
    public class func auth() -> Auth {
        orTrap("FirebaseAuth") { () throws(Status) in
            guard let app = FirebaseApp.app() else {
                throw .failedPrecondition(
                    "The default FirebaseApp is not configured: call FirebaseApp.configure() first.")
            }
            return auth(app: app)
        }
    }

    /// The `Auth` of an app.
    /// - Parameter app: a configured app.
    /// - Returns: the instance of the app; always the same one until the app is deleted.
    public class func auth(app: FirebaseApp) -> Auth {
        instances.with { instances in
            if let auth = instances[ObjectIdentifier(app)] { return auth }
            let auth = Auth(app: app)
            instances[ObjectIdentifier(app)] = auth
            return auth
        }
    }

    static func forget(app: FirebaseApp) { instances.with { $0[ObjectIdentifier(app)] = nil } }

    /// The signed-in user; nil when there is none.
    public var currentUser: User? { state.with { $0.user } }

    /// Signs in with a token. Its claims `user_id`, `uid` or `sub` contain the user's id. It makes no request and works
    /// offline: the server verifies the token when it is sent, this library does not.
    /// - Parameter token: a JSON Web Token: three parts, or two parts when it is unsigned, which emulators accept.
    /// - Returns: the result with the signed-in user.
    /// - Throws: an `NSError` of `AuthErrorDomain` with the code `AuthErrorCode.invalidCustomToken` when the token
    ///   cannot be read or contains no user. It does not wait, and therefore does not check for cancellation.
    @discardableResult
    nonisolated(nonsending) public func signIn(withCustomToken token: String) async throws -> AuthDataResult {
        try signInNow(withCustomToken: token)
    }

    /// Signs in with a token. The user is signed in when the call returns; the completion follows. It makes no request
    /// and works offline.
    /// - Parameters:
    ///   - token: a JSON Web Token: three parts, or two parts when it is unsigned, which emulators accept.
    ///   - completion: runs on the main queue. It receives the result, or an `NSError` of `AuthErrorDomain` with the
    ///     code `AuthErrorCode.invalidCustomToken`.
    public func signIn(withCustomToken token: String, completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil) {
        let result: Result<AuthDataResult, any Error> = Result { try signInNow(withCustomToken: token) }
        guard let completion else { return }
        let carried = Carried(completion)
        DispatchQueue.main.async {
            switch result {
            case .success(let data): carried.value(data, nil)
            case .failure(let error): carried.value(nil, error)
            }
        }
    }

    private func signInNow(withCustomToken token: String) throws -> AuthDataResult {
        do {
            let user = User(uid: try TokenClaims.uid(of: token), token: token, auth: self)
            set(user)
            return AuthDataResult(user: user)
        } catch {
            throw AuthErrorCode.invalidCustomToken.error(error.message)
        }
    }

    /// Sets the source of new tokens. It is used when the server rejects the present token, and by
    /// `User.getIDToken(forcingRefresh:)`. Without it the present token is used again.
    /// - Parameter refresh: returns a new token of the same user. It runs in a task of the library, and may throw any
    ///   error, which the request then fails with; nil removes the source.
    public func setTokenRefresh(_ refresh: (@Sendable () async throws -> String)?) {
        refreshing.with { $0 = refresh }
    }

    /// Signs the user out.
    /// - Throws: nothing; Apple's signature has `throws`.
    public func signOut() throws { set(nil) }

    private func set(_ user: User?) {
        let (tokenObservers, stateObservers) = state.with { state in
            state.user = user
            return (Array(state.tokenObservers.values), Array(state.stateObservers.values))
        }
        for observer in tokenObservers { observer(user?.uid) }
        for observer in stateObservers { DispatchQueue.main.async { [self] in observer.value(self, user) } }
    }

    /// Adds a listener that runs on the main queue with the present user, and after each change.
    /// - Parameter listener: receives this instance and the user; nil when no user is signed in.
    /// - Returns: the handle for `removeStateDidChangeListener(_:)`.
    @discardableResult
    public func addStateDidChangeListener(_ listener: @escaping (Auth, User?) -> Void)
        -> AuthStateDidChangeListenerHandle
    {
        let carried = Carried(listener)
        let (handle, user) = state.with { state in
            defer { state.nextHandle += 1 }
            state.stateObservers[state.nextHandle] = carried
            return (state.nextHandle, state.user)
        }
        DispatchQueue.main.async { [self] in carried.value(self, user) }
        return NSNumber(value: handle)
    }

    /// Removes a listener. A call that is already on the main queue may still follow.
    /// - Parameter handle: what `addStateDidChangeListener(_:)` returned. Any other handle has no effect.
    public func removeStateDidChangeListener(_ handle: AuthStateDidChangeListenerHandle) {
        guard let handle = handle as? NSNumber else { return }
        state.with { $0.stateObservers[handle.intValue] = nil }
    }

    // MARK: AuthTokenProvider

    /// The token for the next request; nil when no user is signed in.
    /// - Parameter isForcingRefresh: whether to fetch a new token with the closure of `setTokenRefresh(_:)`.
    /// - Returns: the user's id and token; nil when no user is signed in.
    /// - Throws: the error of the closure of `setTokenRefresh(_:)`; `AuthErrorCode.invalidCustomToken` when the new
    ///   token cannot be read, `AuthErrorCode.userMismatch` when it is of another user. `CancellationError` when the
    ///   task is cancelled while a new token is fetched.
    public func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken? {
        guard let user = currentUser else { return nil }
        return AuthToken(uid: user.uid, token: try await refreshedToken(of: user, forcing: isForcingRefresh))
    }

    func refreshedToken(of user: User, forcing isForcing: Bool) async throws -> String {
        guard isForcing, let refresh = refreshing.with({ $0 }) else { return user.token }
        // The program's closure may ignore the cancellation of its task; the caller does not wait for it then.
        let token = try await answer(stoppable: { completion in
            let task = Task {
                do { completion(.success(try await refresh())) } catch { completion(.failure(error)) }
            }
            return { task.cancel() }
        })
        let uid: String
        do {
            uid = try TokenClaims.uid(of: token)
        } catch {
            throw AuthErrorCode.invalidCustomToken.error(error.message)
        }
        guard uid == user.uid else {
            throw AuthErrorCode.userMismatch.error("The refreshed token is of user \(uid), not of \(user.uid).")
        }
        user.replaceToken(token)
        return token
    }

    /// Sets the observer of `AuthTokenProvider`, which has only one. Databases of an app that share an `Auth` use
    /// another function, and do not replace this observer.
    /// - Parameter changed: receives the user's id at once and after each change, on the thread that signs in or out;
    ///   nil when no user is signed in. Pass nil to remove the observer.
    public func observeUser(_ changed: (@Sendable (String?) -> Void)?) { observeUser(changed, by: self) }

    /// - Parameter owner: each owner has one observer.
    func observeUser(_ changed: (@Sendable (String?) -> Void)?, by owner: AnyObject) {
        let uid = state.with { state in
            state.tokenObservers[ObjectIdentifier(owner)] = changed
            return state.user?.uid
        }
        changed?(uid)
    }
}

/// Identifies a listener of `Auth`.
public typealias AuthStateDidChangeListenerHandle = any NSObjectProtocol
