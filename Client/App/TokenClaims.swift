internal import Foundation
package import HearthModel

/// Reads a token's claims without a check of its signature: only the server can check it.
package enum TokenClaims {
    package static func uid(of token: String) throws(Status) -> String {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2 || parts.count == 3 else {
            throw .invalidArgument(
                "The custom token is not a JSON Web Token: expected two or three parts joined by dots.")
        }
        var payload = String(parts[1]).replacing("-", with: "+").replacing("_", with: "/")
        payload += String(repeating: "=", count: (4 - payload.count % 4) % 4)
        guard let data = Data(base64Encoded: payload),
            let claims = try? JSONSerialization.jsonObject(with: data) as? [String: Any]
        else { throw .invalidArgument("The custom token's payload is not the base64url of a JSON object.") }
        for name in ["user_id", "uid", "sub"] {
            if let uid = claims[name] as? String, !uid.isEmpty { return uid }
        }
        throw .invalidArgument("The custom token contains no user: it has none of the claims user_id, uid and sub.")
    }
}
