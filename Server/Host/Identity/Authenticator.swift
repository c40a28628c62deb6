import HearthConcurrency
import COpenSSL
import HearthModel
import HearthDocuments
import HearthNetwork
import Synchronization

/// Identifies the caller of a request by its `authorization` header.
///
/// In emulator mode `Bearer owner` is the administrator, and unsigned tokens are accepted, as the SDKs send them to
/// Google's emulator: that is for machines without other users. Otherwise a token is accepted when a key of a trusted
/// issuer has signed it, and a credential when it is one of the server's own.
package final class Authenticator: Sendable {
    private struct Issuer {
        var expected: IdentityConfiguration.Issuer
        var keys: KeySet
    }

    private struct Verified {
        var identity: Identity
        var end: TokenEnd
    }

    package let isEmulator: Bool
    /// The project of tokens that name none.
    private let project: String
    private let sharesSignIn: Bool
    private let issuers: [Issuer]
    private let keys: [IdentityConfiguration.Key]
    /// By the digest of the secret, so that the time of a comparison does not depend on the secret.
    private let credentials: [[UInt8]: AdministratorScope]
    private let clock: any Clock
    /// Tokens that were verified before.
    private let verified = Mutex(Known())

    private struct Known {
        /// By the whole header.
        var byHeader: [String: Verified] = [:]
        var sizeBytes = 0
    }

    private static let verifiedMax = 10_000
    private static let verifiedBytesMax = 16_000_000
    /// The allowed difference between clocks, in seconds.
    private static let skewSeconds: Int64 = 60

    package init(
        isEmulator: Bool, project: String, _ configuration: IdentityConfiguration = IdentityConfiguration(),
        clock: any Clock = SystemClock()
    ) {
        self.isEmulator = isEmulator
        self.project = project
        sharesSignIn = configuration.sharesSignIn
        self.clock = clock
        // Only when there are keys to fetch.
        let pool = configuration.issuers.isEmpty ? nil : WorkerGroup(name: "hearth-keys", threadsMax: 2)
        issuers = configuration.issuers.compactMap { issuer in
            guard let threads = pool else { return nil }
            let isAddress = issuer.keys.hasPrefix("https://") || issuer.keys.hasPrefix("http://")
            return Issuer(
                expected: issuer,
                keys: KeySet(isAddress ? .address(issuer.keys) : .file(issuer.keys), clock: clock, threads: threads))
        }
        keys = configuration.keys
        var credentials: [[UInt8]: AdministratorScope] = [:]
        for credential in configuration.credentials {
            credentials[Self.digest(credential.secret)] = AdministratorScope(
                project: credential.project, isReadOnly: credential.isReadOnly, name: credential.name)
        }
        self.credentials = credentials
    }

    private static func digest(_ string: String) -> [UInt8] {
        let bytes = Array(string.utf8)
        var digest = [UInt8](repeating: 0, count: 32)
        _ = EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil)
        return digest
    }

    /// The identity of a caller without a header, or with one that was verified before.
    package func known(_ authorization: String?) -> Identity? {
        guard let authorization, !authorization.isEmpty else { return .nobody }
        return remembered(authorization)
    }

    /// Calls `done` on the loop with the caller's identity: immediately, or later when an issuer's keys must be
    /// fetched.
    /// - Parameter authorization: the header's value; nil without one.
    package func identify(
        _ authorization: String?, on loop: EventLoop, _ done: @escaping @Sendable (Result<Identity, Status>) -> Void
    ) {
        if let known = known(authorization) { return done(.success(known)) }
        let authorization = authorization ?? ""
        guard let space = authorization.utf8.firstIndex(of: UInt8(ascii: " ")),
            authorization[..<space].lowercased() == "bearer"
        else {
            return done(.failure(Status(.unauthenticated, "The authorization must be a bearer token.")))
        }
        let string = String(authorization[authorization.utf8.index(after: space)...])
        if !credentials.isEmpty, let scope = credentials[Self.digest(string)] {
            return done(.success(.administrator(scope)))
        }
        if !isEmulator, string.lowercased() == "owner" { return done(.failure(Self.noOwner)) }
        let token: JSONWebToken
        do throws(Status) {
            if isEmulator, let identity = try emulated(string) {
                remember(authorization, Verified(identity: identity, end: .never))
                return done(.success(identity))
            }
            token = try JSONWebToken(string)
        } catch {
            return done(.failure(error))
        }
        check(token) { [self] result in
            if case .success(let verified) = result { remember(authorization, verified) }
            let identity = result.map(\.identity)
            if loop.isCurrent { done(identity) } else { loop.execute { done(identity) } }
        }
    }

    /// SDKs send this when a variable such as FIRESTORE_EMULATOR_HOST is set.
    private static let noOwner = Status(
        .unauthenticated,
        "\"owner\" is an administrator in local development only (--emulator). Administrators send a secret of \"auth\" in hearth.json."
    )

    // MARK: Emulator

    /// As in Google's emulator, an unsigned token is only checked for a subject. Expired tokens are accepted: those
    /// that the SDKs create for tests expired in 1970.
    /// - Returns: nil for a signed token, which must be verified.
    private func emulated(_ string: String) throws(Status) -> Identity? {
        // The other prefix is that of a service account's access token, which the admin SDKs send, too.
        if string.lowercased() == "owner" || string.hasPrefix("ya29.") { return .owner }
        let token = try JSONWebToken(string)
        guard token.signature.isEmpty || (issuers.isEmpty && keys.isEmpty) else { return nil }
        guard let uid = token.subject else { throw JSONWebToken.malformed("it has no subject") }
        return .client(ClientIdentity(uid: uid, token: token.claims, end: nil, projects: .all))
    }

    // MARK: Verification

    private func remembered(_ string: String) -> Identity? {
        let now = clock.now().microseconds / 1_000_000
        guard let known = verified.withLock({ $0.byHeader[string] }) else { return nil }
        if known.end.seconds > now, known.end.proof.map({ $0.validity == .accepted }) ?? true {
            return known.identity
        }
        verified.withLock { verified in
            if verified.byHeader.removeValue(forKey: string) != nil { verified.sizeBytes -= string.utf8.count }
        }
        return nil
    }

    private func remember(_ string: String, _ new: Verified) {
        verified.withLock { verified in
            // They are verified again at their next use.
            if verified.byHeader.count >= Self.verifiedMax || verified.sizeBytes >= Self.verifiedBytesMax {
                verified = Known()
            }
            if verified.byHeader.updateValue(new, forKey: string) == nil { verified.sizeBytes += string.utf8.count }
        }
    }

    private func check(_ token: JSONWebToken, _ done: @escaping @Sendable (Result<Verified, Status>) -> Void) {
        if SigningKey.Algorithm(rawValue: token.algorithm) == nil {
            return done(.failure(Self.refused("the algorithm \(token.algorithm.prefix(20)) is not accepted")))
        }
        let claimed = token.string("iss") ?? ""
        let own = keys.filter { key in
            key.issuer == claimed && key.key.algorithm.rawValue == token.algorithm
                && (token.keyID == nil || key.id == nil || key.id == token.keyID)
        }
        if !own.isEmpty {
            return done(
                Result { () throws(Status) in
                    try verify(token, own.map(\.key), projects: { self.projects(of: token, own, $0) }, { _ in nil })
                })
        }
        let trusted = issuers.filter { $0.expected.issuer == claimed }
        if trusted.isEmpty {
            return done(.failure(Self.refused("its issuer is not one that this server trusts")))
        }
        // An issuer of several projects has an entry with its audience for each of them.
        let audiences = token.audiences
        let meant = trusted.filter { issuer in audiences.contains { UTF8Order.equal($0, issuer.expected.audience) } }
        guard let issuer = meant.first else {
            return done(.failure(Self.refused("it is for another audience")))
        }
        let projects = meant.filter { $0.expected.keys == issuer.expected.keys }.map(\.expected.tokenProject)
        issuer.keys.keys(for: token) { [self] result in
            done(
                Result { () throws(Status) in
                    let candidates = try result.get()
                    return try verify(
                        token, candidates.keys, projects: { _ in sharesSignIn ? .all : .only(projects) },
                        { key in TokenProof(keys: issuer.keys, key: key, generation: candidates.generation) })
                })
        }
    }

    /// The projects that a token of the operator's own keys is for: that of the key, else those of its audience, else
    /// the server's.
    private func projects(
        of token: JSONWebToken, _ own: [IdentityConfiguration.Key], _ key: SigningKey
    ) -> TokenProjects {
        if sharesSignIn { return .all }
        let named = own.filter { $0.key === key }.compactMap(\.project)
        if !named.isEmpty { return .only(named) }
        return .only(token.claims["aud"] == nil ? [project] : token.audiences)
    }

    package static let expired = refused("it has expired")
    /// A valid token that was sent with a request for data of another project.
    package static let otherProject = refused("it is for another project")

    private static func refused(_ reason: String) -> Status {
        Status(.unauthenticated, "The token is not accepted: \(reason).")
    }

    /// - Parameters:
    ///   - projects: of a token that a key has signed.
    ///   - proof: the withdrawable key that has signed the token; nil when the key cannot be withdrawn.
    private func verify(
        _ token: JSONWebToken, _ keys: [SigningKey], projects: (SigningKey) -> TokenProjects,
        _ proof: (SigningKey) -> TokenProof?
    ) throws(Status) -> Verified {
        guard let key = keys.first(where: { $0.verifies(token.signature, of: token.signed) }) else {
            throw Self.refused("its signature is wrong")
        }
        let now = clock.now().microseconds / 1_000_000
        guard let expiry = try token.time("exp") else { throw Self.refused("its expiry time is missing") }
        let end = expiry + Self.skewSeconds
        if end <= now { throw Self.expired }
        for name in ["nbf", "iat", "auth_time"] {
            if let time = try token.time(name), time > now + Self.skewSeconds {
                throw Self.refused("its issue time is in the future")
            }
        }
        guard let uid = token.subject else { throw Self.refused("it has no subject") }
        let tokenEnd = TokenEnd(seconds: end, proof: proof(key), clock: clock)
        return Verified(
            identity: .client(
                ClientIdentity(uid: uid, token: token.claims, end: tokenEnd, projects: projects(key))), end: tokenEnd)
    }
}
