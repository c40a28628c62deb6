import HearthHost
import HearthModel
import HearthNetwork

/// Determines the identity of a request on the Realtime Database: with the verifiers of Firestore's requests, in the
/// forms and with the messages of the Realtime Database.
///
/// In emulator mode a client with a bearer that is no ID token is an administrator, as SDKs with any credentials are
/// for Google's emulator; tokens are verified as `Authenticator` documents.
final class RealtimeAuthenticator: Sendable {
    /// Source: the messages of the service.
    static let unreadable = Status(.unauthenticated, "Could not parse auth token.")
    static let expired = Status(.unauthenticated, "Auth token is expired")
    static let otherProject = Status(.unauthenticated, "Auth token is for another project.")
    static let denied = Status(.permissionDenied, "Permission denied")

    private let authenticator: Authenticator

    init(_ authenticator: Authenticator) {
        self.authenticator = authenticator
    }

    typealias Done = @Sendable (Result<RealtimeIdentity, Status>) -> Void

    /// Calls `done` on the loop with the identity of a request: now, or later when an issuer's keys must be fetched.
    /// - Parameters:
    ///   - project: of the namespace; UNAUTHENTICATED for a token of another one.
    ///   - override: the override that an administrator requests; PERMISSION_DENIED for everyone else.
    func identify(
        _ credential: RealtimeCredential, of project: String, override: RealtimeOverride? = nil, on loop: EventLoop,
        _ done: @escaping Done
    ) {
        identify(credential, of: project, on: loop) { result in
            guard case .success(let identity) = result, let override else { return done(result) }
            guard case .administrator(let scope) = identity else { return done(.failure(Self.denied)) }
            done(.success(override.identity(by: scope)))
        }
    }

    private func identify(
        _ credential: RealtimeCredential, of project: String, on loop: EventLoop, _ done: @escaping Done
    ) {
        switch credential {
        case .none: done(.success(.nobody))
        case .header(let string):
            guard let space = string.utf8.firstIndex(of: UInt8(ascii: " ")), string[..<space].lowercased() == "bearer"
            else {
                return done(.failure(Self.unreadable))
            }
            let bearer = String(string[string.utf8.index(after: space)...])
            if authenticator.isEmulator, !Self.isIDToken(bearer) { return done(.success(.owner)) }
            verify(bearer, of: project, on: loop, done)
        case .token(let string): verify(string, of: project, on: loop, done)
        case .accessToken(let string):
            if authenticator.isEmulator { return done(.success(.owner)) }
            verify(string, of: project, on: loop) { result in
                if case .success(.client) = result { return done(.failure(Self.unreadable)) }
                done(result)
            }
        }
    }

    private func verify(_ string: String, of project: String, on loop: EventLoop, _ done: @escaping Done) {
        authenticator.identify("Bearer " + string, on: loop) { result in
            switch result {
            case .success(let identity) where !identity.isFor(project): done(.failure(Self.otherProject))
            case .success(let identity): done(.success(RealtimeIdentity(identity)))
            case .failure(let status):
                switch status {
                case Authenticator.expired: done(.failure(Self.expired))
                case _ where status.code == .unauthenticated: done(.failure(Self.unreadable))
                // The issuer's keys are not available.
                default: done(.failure(status))
                }
            }
        }
    }

    /// Whether a bearer is a user's and not a service's: the access tokens that some SDKs sign themselves have the same
    /// form.
    private static func isIDToken(_ string: String) -> Bool {
        do throws(Status) {
            let token = try JSONWebToken(string)
            return token.signature.isEmpty || token.claims["firebase"] != nil || token.claims["user_id"] != nil
        } catch {
            return false
        }
    }
}
