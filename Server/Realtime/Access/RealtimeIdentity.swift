import HearthHost
import HearthModel
import HearthTree

/// For whom a request on the Realtime Database is carried out.
enum RealtimeIdentity: Sendable {
    /// Whoever may do everything that a scope allows; security rules aren't asked.
    case administrator(AdministratorScope)
    /// Somebody of whom rules decide by `auth`, which is nil for nobody in particular.
    /// - end: when the token ends; nil for never.
    case client(auth: JSONValue?, end: TokenEnd?)
    /// An administrator whom rules see as somebody else, or as nobody: what the scope forbids stays forbidden.
    case impersonation(auth: JSONValue?, by: AdministratorScope)

    static let owner = RealtimeIdentity.administrator(AdministratorScope())
    static let nobody = RealtimeIdentity.client(auth: nil, end: nil)

    /// What rules see as `auth`; nil for nobody in particular, and for administrators, of whom they aren't asked.
    var auth: JSONValue? {
        switch self {
        case .administrator: nil
        case .client(let auth, _), .impersonation(let auth, _): auth
        }
    }

    /// The limits of whoever has an administrator's credential.
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

    /// On whose account the requests of a connection are.
    /// - Parameter address: of the peer, `address:port`.
    func requester(at address: String, connection: UInt64) -> Requester {
        if scope != nil { return .administrator(connection: connection) }
        guard let uid = auth?["uid"]?.string else { return .nobody(at: address, connection: connection) }
        return .user(uid, connection: connection)
    }

    /// The same somebody as the Realtime Database's rules see them.
    init(_ identity: Identity) {
        switch identity {
        case .administrator(let scope): self = .administrator(scope)
        case .client(let client): self = .client(auth: client.map { Self.auth($0) }, end: client?.end)
        }
    }

    /// `auth` of rules: `uid`, `provider` and all claims as `token`. Source: the reference of `auth` in the documentation of
    /// the Realtime Database's rules.
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

/// Whom an administrator wants rules to see in place of nobody being asked: `auth_variable_override`.
package enum RealtimeOverride: Sendable {
    case nobody
    case auth(JSONValue)

    /// - Parameter text: JSON: an object, or `null` for nobody.
    /// - Throws: INVALID_ARGUMENT for anything else.
    init(parsing string: String) throws(Status) {
        let value: JSONValue
        do throws(TreeDataError) {
            value = try TreeJSON.value(Array(string.utf8))
        } catch {
            throw .invalidArgument("auth_variable_override must be a JSON object or null.")
        }
        try self.init(value)
    }

    init(_ value: JSONValue) throws(Status) {
        switch value {
        case .null: self = .nobody
        case .object: self = .auth(value)
        default: throw .invalidArgument("auth_variable_override must be a JSON object or null.")
        }
    }

    /// - Parameter scope: of the administrator whose wish it is.
    func identity(by scope: AdministratorScope) -> RealtimeIdentity {
        switch self {
        case .nobody: .impersonation(auth: nil, by: scope)
        case .auth(let auth): .impersonation(auth: auth, by: scope)
        }
    }
}
