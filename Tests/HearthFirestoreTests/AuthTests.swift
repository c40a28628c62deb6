import Foundation
import HearthModel
import HearthSync
import HearthTestSupport
import Testing

@testable import HearthFirestore

struct AuthTests {
    /// An unsigned token, or one whose signature is not checked.
    static func token(_ claims: String, salt: String = "") -> String {
        let payload = Data(claims.utf8).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return "e30.\(payload).\(salt)"
    }

    private let bench: Bench
    private let auth: Auth

    init() throws {
        bench = try Bench()
        auth = Auth.auth(app: bench.app)
    }

    @Test func signsIn() async throws {
        let token = Self.token(#"{"sub": "ada", "name": "Ä?>"}"#)
        let result = try await auth.signIn(withCustomToken: token)
        #expect(result.user.uid == "ada")
        #expect(auth.currentUser?.uid == "ada")
        #expect(try await auth.currentUser?.getIDToken() == token)
        try auth.signOut()
        #expect(auth.currentUser == nil)
        #expect(Auth.auth(app: bench.app) === auth)
    }

    /// The program's closure does not return, whatever happens to its task.
    @Test(.timeLimit(.minutes(Patience.minutes))) func aRefreshThatHangsCanBeCancelled() async throws {
        let old = Self.token(#"{"sub": "ada"}"#)
        let user = try await auth.signIn(withCustomToken: old).user
        let waiting = Locked<CheckedContinuation<String, Never>?>(nil)
        auth.setTokenRefresh {
            await withCheckedContinuation { continuation in waiting.with { $0 = continuation } }
        }
        let auth = auth
        for call in [
            { @Sendable in _ = try await user.getIDToken(forcingRefresh: true) },
            { @Sendable in _ = try await auth.token(forcingRefresh: true) },
        ] {
            let task = Task { try await call() }
            #expect(await eventually { waiting.with { $0 != nil } })
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            waiting.with { waiting in
                waiting?.resume(returning: old)
                waiting = nil
            }
        }
        #expect(try await user.getIDToken() == old)
    }

    @Test func claims() throws {
        #expect(try TokenClaims.uid(of: Self.token(#"{"user_id": "a", "sub": "b"}"#)) == "a")
        #expect(try TokenClaims.uid(of: Self.token(#"{"uid": "c", "sub": "b"}"#)) == "c")
        #expect(try TokenClaims.uid(of: String(Self.token(#"{"sub": "b"}"#).dropLast())) == "b", "unsigned")
        for bad in ["", "x", "a.b.c.d", "e30.!!.x", Self.token("[1]"), Self.token("{}"), Self.token(#"{"sub": ""}"#)] {
            #expect(throws: Status.self) { try TokenClaims.uid(of: bad) }
        }
    }

    /// A program's own provider, which supports only one observer, as the protocol states.
    private final class Provider: AuthTokenProvider {
        struct State: Sendable {
            var user: String? = "ada"
            var observer: (@Sendable (String?) -> Void)?
            var observations: [Bool] = []
        }

        let state = Locked(State())

        func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken? {
            state.with { $0.user.map { AuthToken(uid: $0, token: "t-\($0)") } }
        }

        func observeUser(_ changed: (@Sendable (String?) -> Void)?) {
            let user = state.with { state in
                state.observer = changed
                state.observations.append(changed != nil)
                return state.user
            }
            changed?(user)
        }

        func become(_ user: String?) {
            let observer = state.with { state in
                state.user = user
                return state.observer
            }
            observer?(user)
        }
    }

    @Test func aProviderIsSharedByDatabases() async throws {
        let provider = Provider()
        let received = Locked<[String]>([])
        func note(_ name: String) -> @Sendable (String?) -> Void {
            { user in received.with { $0.append("\(name) \(user ?? "-")") } }
        }
        let (first, second) = (AuthShare(provider), AuthShare(provider))
        first.observeUser(note("1"))
        second.observeUser(note("2"))
        #expect(received.with { $0 } == ["1 ada", "2 ada"])
        provider.become("bob")
        #expect(Set(received.with { $0.dropFirst(2) }) == ["1 bob", "2 bob"])
        first.observeUser(nil)
        provider.become(nil)
        #expect(received.with { $0.dropFirst(4) } == ["2 -"])
        #expect(try await second.token(forcingRefresh: true) == nil)
        second.observeUser(nil)
        second.observeUser(nil)
        provider.become("eve")
        #expect(received.with { $0.count } == 5)
        #expect(provider.state.with { $0.observations } == [true, false])
        // Others may observe again.
        AuthShare(provider).observeUser(note("3"))
        #expect(received.with { $0.last } == "3 eve")
        #expect(provider.state.with { $0.observations } == [true, false, true])
    }

    @Test func badTokensAreErrors() async {
        await #expect(throws: NSError.self) { try await auth.signIn(withCustomToken: "nonsense") }
        #expect(auth.currentUser == nil)
    }

    @Test func engineSeesTheUser() async throws {
        let users = Locked<[String?]>([])
        let credentials = bench.engine.request.credentials
        credentials.observeUser { user in users.with { $0.append(user.uid) } }
        try await auth.signIn(withCustomToken: Self.token(#"{"sub": "ada"}"#))
        try await auth.signIn(withCustomToken: Self.token(#"{"sub": "bob"}"#))
        try auth.signOut()
        #expect(users.with { $0 } == [nil, "ada", "bob", nil])
        let (user, token) = try await credentials.token()
        #expect(user == .unauthenticated)
        #expect(token == nil)
        credentials.observeUser(nil)
        try await auth.signIn(withCustomToken: Self.token(#"{"sub": "eve"}"#))
        #expect(users.with { $0.count } == 4)
    }

    @Test func refusedTokensAreRefreshed() async throws {
        let credentials = bench.engine.request.credentials
        let first = Self.token(#"{"sub": "ada"}"#)
        let second = Self.token(#"{"sub": "ada"}"#, salt: "2")
        try await auth.signIn(withCustomToken: first)
        let calls = Locked(0)
        auth.setTokenRefresh {
            calls.with { $0 += 1 }
            return second
        }
        #expect(try await credentials.token().token == first)
        #expect(calls.with { $0 } == 0)
        credentials.invalidateToken()
        #expect(try await credentials.token().token == second)
        #expect(try await credentials.token().token == second)
        #expect(calls.with { $0 } == 1)
        auth.setTokenRefresh { Self.token(#"{"sub": "mallory"}"#) }
        credentials.invalidateToken()
        await #expect(throws: Status.self) { _ = try await credentials.token() }
    }

    @Test func ownProviders() async throws {
        final class Provider: AuthTokenProvider {
            func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken? {
                AuthToken(uid: "me", token: isForcingRefresh ? "new" : "old")
            }
            func observeUser(_ changed: (@Sendable (String?) -> Void)?) { changed?("me") }
        }
        let bench = try Bench { $0.authTokenProvider = Provider() }
        let credentials = bench.engine.request.credentials
        let (user, token) = try await credentials.token()
        #expect(user.uid == "me")
        #expect(token == "old")
        credentials.invalidateToken()
        #expect(try await credentials.token().token == "new")
    }
}
