import HearthEvents
import HearthTree

extension RealtimeIdentity {
    /// Who makes a write, for events.
    ///
    /// An administrator that rules see as another is that other for events, too, when it has a `uid`.
    var author: EventAuthor {
        switch self {
        case .administrator: .administrator(name: "")
        case .client(nil, _), .impersonation(nil, _): .nobody
        case .client(let auth?, _): Self.user(auth) ?? .user(id: "", provider: "", claims: "{}")
        case .impersonation(let auth?, _): Self.user(auth) ?? .administrator(name: "")
        }
    }

    private static func user(_ auth: JSONValue) -> EventAuthor? {
        guard let id = auth["uid"]?.string else { return nil }
        var claims: [UInt8] = []
        TreeJSON.append(auth["token"] ?? .object([]), to: &claims)
        return .user(
            id: id, provider: auth["provider"]?.string ?? "custom", claims: String(decoding: claims, as: UTF8.self))
    }
}
