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
    ///     1, 4                                                  nobody, unknown
    ///     2 · name                                              an administrator
    ///     3 · id                                                a user of whom nothing else is known, as in Cloud Firestore
    ///     5 · bytes of the id (4) · bytes of the provider (4) · id · provider · claims
    ///
    /// Strings are UTF-8 and may have any characters: a user chooses some of them.
    package var stored: [UInt8] {
        switch self {
        case .system: []
        case .unknown: [4]
        case .nobody: [1]
        case .administrator(let name): [2] + Array(name.utf8)
        case .user(let id, "", ""): [3] + Array(id.utf8)
        case .user(let id, let provider, let claims):
            [5] + Self.length(id) + Self.length(provider) + Array(id.utf8) + Array(provider.utf8) + Array(claims.utf8)
        }
    }

    /// What can't be read is the server itself: nobody would be blamed for another's change.
    package init(stored bytes: [UInt8]) {
        let rest = bytes.dropFirst()
        switch bytes.first {
        case 1: self = .nobody
        case 2: self = .administrator(name: String(decoding: rest, as: UTF8.self))
        case 3: self = .user(id: String(decoding: rest, as: UTF8.self), provider: "", claims: "")
        case 4: self = .unknown
        case 5: self = Self.user(rest) ?? .system
        default: self = .system
        }
    }

    private static func length(_ string: String) -> [UInt8] {
        withUnsafeBytes(of: UInt32(string.utf8.count).bigEndian, Array.init)
    }

    /// - Returns: nil when the lengths are not those of the bytes.
    private static func user(_ bytes: ArraySlice<UInt8>) -> EventAuthor? {
        var rest = bytes
        var lengths: [Int] = []
        for _ in 0..<2 {
            guard rest.count >= 4 else { return nil }
            lengths.append(rest.prefix(4).reduce(0) { $0 << 8 | Int($1) })
            rest = rest.dropFirst(4)
        }
        guard lengths[0] + lengths[1] <= rest.count else { return nil }
        let (id, more) = (rest.prefix(lengths[0]), rest.dropFirst(lengths[0]))
        return .user(
            id: String(decoding: id, as: UTF8.self), provider: String(decoding: more.prefix(lengths[1]), as: UTF8.self),
            claims: String(decoding: more.dropFirst(lengths[1]), as: UTF8.self))
    }
}
