/// The account that work is done for. Shared resources (threads, snapshots, the writer, sessions) are distributed
/// round-robin between accounts, and within an account round-robin between its connections.
package struct Requester: Hashable, Sendable {
    /// An identity; for clients without one, the address of the peer.
    package let account: UInt64
    /// The connection on which the request came.
    package let connection: UInt64
    /// Requests of administrators do not fail because of what clients hold.
    package let isAdministrator: Bool

    @inlinable package init(account: UInt64, connection: UInt64, isAdministrator: Bool) {
        self.account = account
        self.connection = connection
        self.isAdministrator = isAdministrator
    }

    /// The server's own work.
    package static let server = Requester(account: 0, connection: 0, isAdministrator: true)

    /// An administrator: each connection is an account, because a backend sends requests of many users over one.
    @inlinable package static func administrator(connection: UInt64) -> Requester {
        Requester(account: connection, connection: connection, isAdministrator: true)
    }

    /// A user, from any address.
    @inlinable package static func user(_ uid: String, connection: UInt64) -> Requester {
        var hasher = Hasher()
        hasher.combine(0)
        hasher.combine(uid)
        return Requester(
            account: UInt64(bitPattern: Int64(hasher.finalize())), connection: connection, isAdministrator: false)
    }

    /// A client without an identity, at an address.
    /// - Parameter address: `address:port`, as the network engine reports it. The port is ignored; of an IPv6 address
    ///   only the 64-bit network counts, because one host owns all addresses of its network.
    @inlinable package static func nobody(at address: String, connection: UInt64) -> Requester {
        var hasher = Hasher()
        hasher.combine(1)
        hasher.combine(PeerAddress.network(of: address))
        return Requester(
            account: UInt64(bitPattern: Int64(hasher.finalize())), connection: connection, isAdministrator: false)
    }
}

/// The part of a peer's address that identifies one host.
package enum PeerAddress {
    /// `192.0.2.1` of `192.0.2.1:5000`, `2001:db8:0:1` of `[2001:db8:0:1::5]:5000`; other strings as they are.
    package static func network(of address: String) -> String {
        guard address.utf8.first == UInt8(ascii: "[") else {
            guard let colon = address.utf8.lastIndex(of: UInt8(ascii: ":")) else { return address }
            return String(address[..<colon])
        }
        let bytes = Array(address.utf8)
        let end = bytes.firstIndex(of: UInt8(ascii: "]")) ?? bytes.endIndex
        let host = String(decoding: bytes[1..<end], as: UTF8.self)
        if host.lowercased().hasPrefix("::ffff:") { return String(host.dropFirst("::ffff:".count)) }
        let halves = host.split(separator: "%", omittingEmptySubsequences: false)[0]
            .split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
            .map { $0.split(separator: ":").map(String.init) }
        var groups = halves[0]
        if halves.count == 2 {
            groups += Array(repeating: "0", count: max(0, 8 - groups.count - halves[1].count)) + halves[1]
        }
        return groups.prefix(4).joined(separator: ":")
    }
}
