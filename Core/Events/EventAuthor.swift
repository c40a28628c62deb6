import HearthModel

/// Who made a change.
package enum EventAuthor: Sendable, Equatable {
    /// With a token; claims are JSON, which legacy events of the Realtime Database have.
    case user(id: String, provider: String, claims: String)
    /// - name: that of the credential.
    case administrator(name: String)
    case nobody
    /// The server itself.
    case system
    /// Nobody has noted it.
    case unknown
}

extension EventAuthor {
    /// The form in which it is stored with a commit; none for the server itself.
    ///
    ///     kind 1 byte · the rest as UTF-8, parts of which are separated by a byte 0
    package var stored: [UInt8] {
        switch self {
        case .system: []
        case .unknown: [4]
        case .nobody: [1]
        case .administrator(let name): [2] + Array(name.utf8)
        case .user(let id, let provider, let claims):
            [3] + Array(id.utf8) + [0] + Array(provider.utf8) + [0] + Array(claims.utf8)
        }
    }

    /// What can't be read is the server itself: nobody would be blamed for another's change.
    package init(stored bytes: [UInt8]) {
        let rest = bytes.dropFirst()
        switch bytes.first {
        case 1: self = .nobody
        case 2: self = .administrator(name: String(decoding: rest, as: UTF8.self))
        case 3:
            let parts = rest.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
                .map { String(decoding: $0, as: UTF8.self) }
            // Cloud Firestore stores the id alone.
            self = .user(
                id: parts[0], provider: parts.count == 3 ? parts[1] : "", claims: parts.count == 3 ? parts[2] : "")
        case 4: self = .unknown
        default: self = .system
        }
    }
}
