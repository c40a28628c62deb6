import HearthHost
import HearthModel
import HearthTree

/// The identity of a request on the Realtime Database.
enum RealtimeIdentity: Sendable {
    /// An administrator: may do everything that the scope allows; security rules are not evaluated.
    case administrator(AdministratorScope)
    /// A client for which rules decide by `auth`, which is nil without authentication.
    /// - end: when the token ends; nil for never.
    case client(auth: JSONValue?, end: TokenEnd?)
    /// An administrator that rules see as another identity, or as nobody: the scope still applies.
    case impersonation(auth: JSONValue?, by: AdministratorScope)

    static let owner = RealtimeIdentity.administrator(AdministratorScope())
    static let nobody = RealtimeIdentity.client(auth: nil, end: nil)

    /// The `auth` of rules; nil without authentication, and for administrators, for which rules are not evaluated.
    var auth: JSONValue? {
        switch self {
        case .administrator: nil
        case .client(let auth, _), .impersonation(let auth, _): auth
        }
    }

    /// The limits of clients with an administrator's credential.
    var scope: AdministratorScope? {
        switch self {
        case .administrator(let scope), .impersonation(_, let scope): scope
        case .client: nil
        }
    }

    /// When the token ends; nil for never.
    var tokenEnd: TokenEnd? {
        guard case .client(_, let end) = self else { return nil }
        return end
    }

    /// The account of a connection's requests.
    /// - Parameter address: of the peer, `address:port`.
    func requester(at address: String, connection: UInt64) -> Requester {
        if scope != nil { return .administrator(connection: connection) }
        guard let uid = auth?["uid"]?.string else { return .nobody(at: address, connection: connection) }
        return .user(uid, connection: connection)
    }

    /// The same client as the Realtime Database's rules see it.
    init(_ identity: Identity) {
        switch identity {
        case .administrator(let scope): self = .administrator(scope)
        case .client(let client): self = .client(auth: client.map { Self.auth($0) }, end: client?.end)
        }
    }

    /// `auth` of rules: `uid`, `provider` and all claims as `token`. Source: the reference of `auth` in the
    /// documentation of the Realtime Database's rules.
    private static func auth(_ client: ClientIdentity) -> JSONValue {
        var provider = "custom"
        if case .map(let firebase)? = client.token["firebase"], case .string(let named)? = firebase["sign_in_provider"]
        {
            provider = named
        }
        return .object([
            (name: "uid", value: .string(client.uid)), (name: "provider", value: .string(provider)),
            (name: "token", value: json(.map(client.token))),
        ])
    }

    private static func json(_ value: Value) -> JSONValue {
        switch value {
        case .boolean(let flag): .bool(flag)
        case .integer(let number): .integer(number)
        case .double(let number): number.isFinite ? .double(number) : .null
        case .string(let string): .string(string)
        case .array(let elements): .array(elements.map { json($0) })
        case .map(let map): .object(map.fields.map { (name: $0.name, value: json($0.value)) })
        // Claims are JSON, which has none of these.
        case .null, .timestamp, .bytes, .reference, .geoPoint, .vector: .null
        }
    }
}
