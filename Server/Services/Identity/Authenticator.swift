import HearthModel
import HearthNetwork

/// Says for whom a request is, by its `authorization`.
///
/// In emulator mode `Bearer owner` is the administrator, and unsigned tokens are believed, as the SDKs send them to Google's
/// emulator: that is for machines on which nobody else is. Otherwise a token is believed when a key of an issuer that
/// the server trusts has signed it, and a credential when it is one of the server's own.
final class Authenticator: Sendable {
    let isEmulator: Bool

    init(isEmulator: Bool) {
        self.isEmulator = isEmulator
    }

    /// Tells `done` on the loop for whom a request is: now, or, when an issuer's keys have to be fetched, later.
    /// - Parameter authorization: the header's value; nil without one.
    func identify(
        _ authorization: String?, on loop: EventLoop, _ done: @escaping @Sendable (Result<Identity, Status>) -> Void
    ) {
        done(Result { () throws(Status) in try identity(authorization) })
    }

    /// - Throws: UNAUTHENTICATED for what isn't believed.
    private func identity(_ authorization: String?) throws(Status) -> Identity {
        guard let authorization, !authorization.isEmpty else { return .nobody }
        guard let space = authorization.utf8.firstIndex(of: UInt8(ascii: " ")),
            authorization[..<space].lowercased() == "bearer"
        else {
            throw Status(.unauthenticated, "The authorization must be a bearer token.")
        }
        let text = String(authorization[authorization.utf8.index(after: space)...])
        if isEmulator { return try emulated(text) }
        throw Status(.unauthenticated, "The server knows no issuer of tokens.")
    }

    /// As in Google's emulator: nothing is checked but that there is a subject. Expired tokens are taken: those that the
    /// SDKs make up for tests have expired in 1970.
    private func emulated(_ text: String) throws(Status) -> Identity {
        if text == "owner" { return .owner }
        let token: JSONWebToken
        do throws(Status) {
            token = try JSONWebToken(text)
        } catch {
            // A service account's access token, which is no JSON Web Token.
            if !text.utf8.contains(UInt8(ascii: ".")) || text.hasPrefix("ya29.") { return .owner }
            throw error
        }
        guard let uid = token.subject else { throw JSONWebToken.malformed("it has no subject") }
        return .client(ClientIdentity(uid: uid, token: token.claims, expiresAt: nil))
    }
}
