import CLinux
import Glibc
import HearthModel

/// The sockets of one host and port: one for each address of the host.
struct ListeningSockets {
    private(set) var descriptors: [Int32] = []
    private(set) var port: Int

    private static let backlog: Int32 = 1_024

    static func open(host: String, port: Int) throws(Status) -> ListeningSockets {
        var sockets = ListeningSockets(port: port)
        do {
            try sockets.openAll(host: host)
        } catch {
            sockets.close()
            throw error
        }
        return sockets
    }

    /// Listens on all of several addresses, or on none.
    static func open(_ addresses: [ListeningAddress]) throws(Status) -> [ListeningSockets] {
        var all: [ListeningSockets] = []
        do throws(Status) {
            for address in addresses { all.append(try open(host: address.host, port: address.port)) }
        } catch {
            for sockets in all { sockets.close() }
            throw error
        }
        return all
    }

    func close() {
        for descriptor in descriptors { Glibc.close(descriptor) }
    }

    private init(port: Int) { self.port = port }

    private mutating func openAll(host: String) throws(Status) {
        var addresses = try SocketAddress.resolve(host: host, port: port, isForListening: true)
        // Every interface: the IPv6 wildcard comes first and includes IPv4.
        addresses.sort { $0.family == AF_INET6 && $1.family != AF_INET6 }
        let isWildcard = host.isEmpty || host == "*"
        var failure: Status?
        for var address in addresses {
            SocketAddress.setPort(port, in: &address)
            do throws(Status) {
                let descriptor = try ListeningSockets.listen(address, isDualStack: isWildcard)
                descriptors.append(descriptor)
                port = SocketAddress.port(of: descriptor)
                if isWildcard { return }
            } catch {
                // A machine without IPv6 still resolves localhost to ::1, which is ignored; a port in use is an error.
                guard error.code == .failedPrecondition else { throw error }
                failure = error
            }
        }
        if descriptors.isEmpty { throw failure ?? .unavailable("the host \(host) has no address") }
    }

    private static func listen(_ address: SocketAddress.Resolved, isDualStack: Bool) throws(Status) -> Int32 {
        let descriptor = socket(
            address.family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw refused(address, SystemError.last) }
        // Allow binding while connections of an earlier run are in TIME_WAIT.
        SocketAddress.set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        if address.family == AF_INET6 {
            SocketAddress.set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, isDualStack ? 0 : 1)
        }
        guard SocketAddress.withPointer(address, { bind(descriptor, $0, $1) }) == 0,
            Glibc.listen(descriptor, backlog) == 0
        else {
            let error = SystemError.last
            Glibc.close(descriptor)
            throw refused(address, error)
        }
        return descriptor
    }

    private static func refused(_ address: SocketAddress.Resolved, _ error: SystemError) -> Status {
        switch error.code {
        case EADDRINUSE: .unavailable("cannot listen on \(address.string): another program uses the port")
        case EACCES: .unavailable("cannot listen on \(address.string): ports below 1024 need a privilege")
        case EADDRNOTAVAIL, EAFNOSUPPORT:
            .failedPrecondition("cannot listen on \(address.string): this machine doesn't have the address")
        default: .unavailable("cannot listen on \(address.string): \(error.string)")
        }
    }
}
