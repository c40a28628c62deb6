import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire

/// For whom a request is carried out.
package enum Identity: Sendable {
    /// Whoever may do everything that a scope allows; security rules aren't asked.
    case administrator(AdministratorScope)
    /// Somebody, or nobody in particular, of whom security rules decide.
    case client(ClientIdentity?)

    package static let owner = Identity.administrator(AdministratorScope())
    package static let nobody = Identity.client(nil)

    /// Equal for those about whom judgements are the same, whatever they ask for.
    package var asJudged: [UInt8] {
        switch self {
        case .administrator(let scope):
            return [scope.project == nil ? 0 : 1, scope.isReadOnly ? 1 : 0] + Array((scope.project ?? "").utf8)
        case .client(nil): return [2]
        case .client(let client?):
            let uid = Array(client.uid.utf8)
            let length = (0..<8).map { UInt8(truncatingIfNeeded: uid.count >> (8 * $0)) }
            return [3] + length + uid + FieldsCodec.encode(client.token)
        }
    }

    /// On whose account the requests of a connection are.
    /// - Parameter address: of the peer, `address:port`.
    package func requester(at address: String, connection: UInt64) -> Requester {
        switch self {
        case .administrator: .administrator(connection: connection)
        case .client(let client?): .user(client.uid, connection: connection)
        case .client(nil): .nobody(at: address, connection: connection)
        }
    }
}

/// What an administrator may do.
package struct AdministratorScope: Sendable, Equatable {
    /// Only in this project; nil for all.
    package var project: String?
    package var isReadOnly = false

    package init(project: String? = nil, isReadOnly: Bool = false) {
        self.project = project
        self.isReadOnly = isReadOnly
    }
}

/// Who a token says that somebody is: `request.auth` of security rules.
package struct ClientIdentity: Sendable {
    package var uid: String
    /// The token's claims, as Firestore shows them to rules.
    package var token: MapValue
    /// Nil for never.
    package var end: TokenEnd?
}

/// When a token ends.
package struct TokenEnd: Sendable {
    /// Since 1970, within the years 1 to 9999.
    var seconds: Int64
    /// What may end it before; nil for nothing.
    var proof: TokenProof?
    /// By which the token was found to be of the present: its end must come by the same one.
    var clock: any Clock

    static let never = TokenEnd(seconds: Timestamp.secondsMax, proof: nil, clock: SystemClock())

    var secondsLeft: Int64 { max(0, seconds - clock.now().microseconds / 1_000_000) }
}
