/// The account that work is done for. Shared resources (threads, snapshots, the writer, sessions) are distributed
/// round-robin between accounts, and within an account round-robin between its connections.
@usableFromInline package struct Requester: Hashable, Sendable {
    /// An identity; for clients without one, the address of the peer.
    @usableFromInline package let account: UInt64
    /// The connection on which the request came.
    @usableFromInline package let connection: UInt64
    /// Requests of administrators do not fail because of what clients hold.
    @usableFromInline package let isAdministrator: Bool

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
