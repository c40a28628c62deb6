import HearthModel
import HearthWire

/// A JSON Web Token in compact form, parsed but not verified. Source: RFC 7515 and RFC 7519.
package struct JSONWebToken: Sendable {
    /// Larger tokens are rejected before they are parsed.
    static let sizeBytesMax = 16 << 10

    let algorithm: String
    let keyID: String?
    package let claims: MapValue
    /// The signed part: the first two parts with the dot between them.
    let signed: [UInt8]
    /// Empty for an unsigned token.
    package let signature: [UInt8]

    /// - Throws: UNAUTHENTICATED when the string is not a token.
    package init(_ string: String) throws(Status) {
        let bytes = Array(string.utf8)
        if bytes.count > Self.sizeBytesMax { throw Self.malformed("it is too long") }
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw Self.malformed("it does not have three parts") }
        let header = try Self.object(parts[0], "header")
        claims = try Self.object(parts[1], "payload")
        guard case .string(let algorithm)? = header["alg"] else { throw Self.malformed("its algorithm is missing") }
        // A critical extension must be understood, and no extension is supported.
        if header["crit"] != nil { throw Self.malformed("it has critical extensions") }
        self.algorithm = algorithm
        switch header["kid"] {
        case nil: keyID = nil
        case .string(let id)?: keyID = id
        default: throw Self.malformed("the ID of its key is not a string")
        }
        signed = Array(bytes[..<parts[1].endIndex])
        guard let signature = Base64URL.decode(parts[2]) else { throw Self.malformed("its signature is not base64url") }
        self.signature = signature
    }

    static func malformed(_ reason: String) -> Status {
        Status(.unauthenticated, "The token cannot be parsed: \(reason).")
    }

    private static func object(_ part: ArraySlice<UInt8>, _ name: String) throws(Status) -> MapValue {
        guard let bytes = Base64URL.decode(part) else { throw malformed("its \(name) is not base64url") }
        do throws(Status) {
            return try PlainJSON.object(bytes, refusesDuplicates: true)
        } catch {
            throw malformed("its \(name) is not a JSON object")
        }
    }

    // MARK: Claims

    func string(_ name: String) -> String? {
        if case .string(let string)? = claims[name] { string } else { nil }
    }

    /// A time in seconds since 1970, at most in the year 9999; nil when the token has none.
    /// - Throws: UNAUTHENTICATED when it is no such time. Source: RFC 7519, section 2, NumericDate.
    func time(_ name: String) throws(Status) -> Int64? {
        let range = 0...Timestamp.secondsMax
        switch claims[name] {
        case nil: return nil
        case .integer(let seconds)? where range.contains(seconds): return seconds
        case .double(let seconds)? where seconds >= 0 && seconds <= Double(range.upperBound): return Int64(seconds)
        default: throw Self.malformed("its \(name) is not a time")
        }
    }

    /// `aud` is one string or a list of strings; empty for anything else.
    var audiences: [String] {
        switch claims["aud"] {
        case .string(let string)?: return [string]
        case .array(let elements)?:
            let strings = elements.compactMap { if case .string(let string) = $0 { string } else { nil } }
            return strings.count == elements.count ? strings : []
        default: return []
        }
    }

    /// The user ID that rules see: `sub`, or Firebase's name for it.
    var subject: String? {
        let subject = claims["sub"] == nil ? string("user_id") : string("sub")
        return subject?.isEmpty == true ? nil : subject
    }
}
