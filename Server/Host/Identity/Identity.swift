import HearthModel
import HearthDocuments
import HearthWire

/// The identity of a request's caller.
package enum Identity: Sendable {
    /// A caller who may do everything that a scope allows; security rules are not evaluated.
    case administrator(AdministratorScope)
    /// An authenticated or anonymous client, which security rules decide about.
    case client(ClientIdentity?)

    package static let owner = Identity.administrator(AdministratorScope())
    package static let nobody = Identity.client(nil)

    /// Equal for identities that rules cannot distinguish.
    package var asJudged: [UInt8] {
        switch self {
        case .administrator(let scope):
            return [scope.project == nil ? 0 : 1, scope.isReadOnly ? 1 : 0] + Array((scope.project ?? "").utf8)
        case .client(nil): return [2]
        case .client(let client?):
            let uid = Array(client.uid.utf8)
            let length = (0..<8).map { UInt8(truncatingIfNeeded: uid.count >> (8 * $0)) }
            return [3] + length + uid + client.projects.asJudged + FieldsCodec.encode(client.token)
        }
    }

    /// Whether requests for data of a project may have this identity. The scope of an administrator is checked
    /// elsewhere.
    package func isFor(_ project: String) -> Bool {
        guard case .client(let client?) = self else { return true }
        return client.projects.contains(project)
    }

    /// Who makes a commit, as it is stored with the events of triggers: the kind, and the name in UTF-8. Empty is the server
    /// itself.
    package var asAuthor: [UInt8] {
        switch self {
        case .client(nil): [1]
        case .administrator(let scope): [2] + Array(scope.name.utf8)
        case .client(let client?): [3] + Array(client.uid.utf8)
        }
    }

    /// The account that a connection's requests are counted for.
    /// - Parameter address: of the peer, `address:port`.
    package func requester(at address: String, connection: UInt64) -> Requester {
        switch self {
        case .administrator: .administrator(connection: connection)
        case .client(let client?): .user(client.uid, connection: connection)
        case .client(nil): .nobody(at: address, connection: connection)
        }
    }
}

extension TokenProjects {
    fileprivate var asJudged: [UInt8] {
        switch self {
        case .all: [0]
        // No project has this byte in its name.
        case .only(let projects): [1] + projects.flatMap { Array($0.utf8) + [0xFF] } + [0xFF]
        }
    }
}
