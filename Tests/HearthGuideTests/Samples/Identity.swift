import HearthFirestore

// sample: token-provider
final class Login: AuthTokenProvider {
    private let uid: String
    private let fetchToken: @Sendable () async throws -> String

    init(uid: String, fetchToken: @escaping @Sendable () async throws -> String) {
        self.uid = uid
        self.fetchToken = fetchToken
    }

    func token(forcingRefresh: Bool) async throws -> AuthToken? {
        AuthToken(uid: uid, token: try await fetchToken())
    }

    /// Here the user never changes: it is enough to set the user once.
    func observeUser(_ changed: (@Sendable (String?) -> Void)?) { changed?(uid) }
}
// end

enum Identity {
    static func signIn(_ app: FirebaseApp, _ token: String) async throws -> String {
        // sample: sign-in
        let auth = Auth.auth(app: app)
        let user = try await auth.signIn(withCustomToken: token).user
        print("This is \(user.uid).")
        // end
        return user.uid
    }

    static func refresh(_ auth: Auth, _ fetchToken: @escaping @Sendable () async throws -> String) {
        // sample: token-refresh
        auth.setTokenRefresh {
            try await fetchToken()
        }
        // end
    }

    static func signOut(_ auth: Auth) throws {
        // sample: sign-out
        try auth.signOut()
        // end
    }

    static func own(_ db: Firestore, _ login: Login) {
        // sample: own-provider
        db.authTokenProvider = login
        // end
    }
}
