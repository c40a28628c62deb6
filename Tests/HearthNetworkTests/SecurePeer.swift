@testable import HearthLoadClient
@testable import HearthNetwork
import HearthTLS
import HearthTestSupport

func wait(_ server: NetworkServer, until isTrue: (NetworkStatistics) -> Bool) async {
    while !isTrue(server.statistics) { await Task.yield() }
}

/// An HTTP/2 client over TLS.
func connectSecurely(_ server: NetworkServer) async throws -> HTTP2Client {
    try await connect(server) {
        $0.host = "localhost"
        $0.isSecure = true
        $0.trustedCertificatesPath = localCertificate?.certificatePath
    }
}

/// A blocking connection with TLS, whose records a test can send byte by byte. One task at a time uses it.
final class SecurePeer: @unchecked Sendable {
    let connection: RawConnection
    private let session: TLSSession

    /// - Parameter host: the last part of the peer's address, 127.0.0.x.
    init(_ server: NetworkServer, host: UInt32 = 1, protocols: [String] = ["http/1.1"]) throws {
        connection = try RawConnection(port: server.port, host: host)
        let context = try TLSContext.client(
            trustedCertificatesPath: localCertificate?.certificatePath, protocols: protocols)
        guard
            let session = TLSSession(context: context, descriptor: connection.descriptor, serverName: "localhost")
        else { throw RawConnection.Failure(string: "no session") }
        self.session = session
        // Some tests expect that it fails.
        guard session.continueHandshake() == .done else { throw RawConnection.Failure(string: "no handshake") }
    }

    /// The header of a record of 16 KiB, and some of its bytes.
    func sendPart(_ count: Int) { connection.send([0x17, 3, 3, 0x40, 0] + [UInt8](repeating: 1, count: count)) }

    func send(_ bytes: [UInt8]) async throws {
        let written = try await blocking { bytes.withUnsafeBytes { self.session.write($0) } }
        guard written == bytes.count else { throw RawConnection.Failure(string: "the connection is broken") }
    }

    /// The next input; nil at the end.
    func readSome() async throws -> [UInt8]? {
        try await blocking {
            var bytes = [UInt8](repeating: 0, count: 16_384)
            switch bytes.withUnsafeMutableBytes({ self.session.read(into: $0) }) {
            case .bytes(let count): return Array(bytes[..<count])
            case .end, .failed: return nil
            case .wouldBlock: throw RawConnection.Failure(string: "nothing came in time")
            }
        }
    }

    /// Whether a request of HTTP/1.1 is answered.
    func isServed() async throws -> Bool {
        try await send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        return try await readSome()?.starts(with: Array("HTTP/1.1".utf8)) ?? false
    }
}
