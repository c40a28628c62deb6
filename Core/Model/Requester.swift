/// On whose account work is done. Whatever is shared (threads, snapshots, the writer, sessions) is given out in turn
/// between accounts, and within an account in turn between its connections.
package struct Requester: Hashable, Sendable {
    /// An identity; for whoever shows none, the address of the peer.
    package let account: UInt64
    /// The connection on which the request came.
    package let connection: UInt64
    /// Administrators aren't refused for what clients hold.
    package let isAdministrator: Bool

    package init(account: UInt64, connection: UInt64, isAdministrator: Bool) {
        self.account = account
        self.connection = connection
        self.isAdministrator = isAdministrator
    }

    /// The server's own work.
    package static let server = Requester(account: 0, connection: 0, isAdministrator: true)

    /// An administrator: each of its connections is an account, because backends send for many users over one.
    package static func administrator(connection: UInt64) -> Requester {
        Requester(account: connection, connection: connection, isAdministrator: true)
    }

    /// A user, wherever the requests come from.
    package static func user(_ uid: String, connection: UInt64) -> Requester {
        var hasher = Hasher()
        hasher.combine(0)
        hasher.combine(uid)
        return Requester(
            account: UInt64(bitPattern: Int64(hasher.finalize())), connection: connection, isAdministrator: false)
    }

    /// Nobody in particular at an address.
    /// - Parameter address: as the network engine gives it, `address:port`; the port is left out, and of an IPv6 address
    ///   all but the network of 64 bits, because one host has all the addresses of it.
    package static func nobody(at address: String, connection: UInt64) -> Requester {
        var hasher = Hasher()
        hasher.combine(1)
        hasher.combine(PeerAddress.network(of: address))
        return Requester(
            account: UInt64(bitPattern: Int64(hasher.finalize())), connection: connection, isAdministrator: false)
    }
}

/// The part of a peer's address that stands for one host.
package enum PeerAddress {
    /// `192.0.2.1` of `192.0.2.1:5000`, `2001:db8:0:1` of `[2001:db8:0:1::5]:5000`; other texts as they are.
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
