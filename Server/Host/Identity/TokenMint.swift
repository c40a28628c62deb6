import HearthModel
import HearthWire

/// Creates tokens with one of the operator's keys.
package enum TokenMint {
    /// - Parameters:
    ///   - subject: the user ID of the bearer, `request.auth.uid`; not empty.
    ///   - claims: further claims, as rules see them in `request.auth.token`.
    ///   - issuedAt: in seconds since 1970.
    ///   - seconds: the lifetime of the token; above 0.
    ///   - Throws: INVALID_ARGUMENT for a key that can only verify, or for duplicate claims.
    package static func mint(
        _ key: SigningKey, keyID: String? = nil, issuer: String = IdentityConfiguration.Key.issuerDefault,
        subject: String, audience: String? = nil, claims: [(name: String, value: Value)] = [], issuedAt: Int64,
        seconds: Int64
    ) throws(Status) -> String {
        var header = [MapValue.Field(name: "alg", value: .string(key.algorithm.rawValue))]
        header.append(.init(name: "typ", value: .string("JWT")))
        if let keyID { header.append(.init(name: "kid", value: .string(keyID))) }
        var payload = [
            MapValue.Field(name: "iss", value: .string(issuer)), .init(name: "sub", value: .string(subject)),
            .init(name: "user_id", value: .string(subject)), .init(name: "iat", value: .integer(issuedAt)),
            .init(name: "auth_time", value: .integer(issuedAt)),
            .init(name: "exp", value: .integer(issuedAt + seconds)),
        ]
        if let audience { payload.append(.init(name: "aud", value: .string(audience))) }
        for claim in claims {
            if payload.contains(where: { $0.name == claim.name }) {
                throw .invalidArgument("The claim \"\(claim.name)\" can't be set.")
            }
            payload.append(.init(name: claim.name, value: claim.value))
        }
        let string = [header, payload].map { Base64URL.encode(PlainJSON.string(.map(MapValue($0)))) }.joined(
            separator: ".")
        return string + "." + Base64URL.encode(try key.sign(Array(string.utf8)))
    }
}

extension TokenMint {
    /// A claim's value as written on a command line: JSON, otherwise a string.
    package static func claim(_ string: String) -> Value {
        do throws(Status) {
            return try PlainJSON.object(Array("{\"v\":\(string)}".utf8))["v"] ?? .string(string)
        } catch {
            return .string(string)
        }
    }
}
