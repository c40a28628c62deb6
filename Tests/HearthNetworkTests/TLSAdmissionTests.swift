@testable import HearthLoadClient
import HearthTestSupport
import CLinux
import Glibc
import HearthModel
import HearthTLS
import Testing

@testable import HearthNetwork

/// Bounds on handshakes, connections and unfinished records of TLS. An endless patience never ends a handshake, and one
/// of zero ends it as soon as others wait: no test depends on how long anything takes.
@Suite(.enabled(if: localCertificate != nil, "there is no /usr/bin/openssl")) struct TLSAdmissionTests {
    private static let endless = 1_000_000

    private func limits(_ change: (inout NetworkLimits) -> Void) -> NetworkLimits {
        var limits = NetworkLimits()
        limits.tlsHandshakeMilliseconds = Self.endless
        limits.tlsHandshakePatienceMilliseconds = Self.endless
        change(&limits)
        return limits
    }

    /// The first record of a client.
    private func hello() throws -> [UInt8] {
        var pair: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &pair) == 0)
        defer { for descriptor in pair { close(descriptor) } }
        let context = try TLSContext.client(trustedCertificatesPath: nil, protocols: ["h2"])
        let session = try #require(TLSSession(context: context, descriptor: pair[0], serverName: "localhost"))
        #expect(session.continueHandshake() == .wantsRead)
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(pair[1], &bytes, bytes.count)
        try #require(count > 5)
        return Array(bytes[..<count])
    }

    @Test func aHelloInPartTakesNoHandshake() async throws {
        let hello = try hello()
        try await withServer(limits: limits { $0.tlsHandshakesMax = 1 }, tls: localCertificate, grpc: echoService) {
            server in
            let halves = try (0..<20).map { _ in try RawConnection(port: server.port) }
            for half in halves { half.send(Array(hello[..<100])) }
            await wait(server) { $0.connectionsOpen == 20 }
            let client = try await connectSecurely(server)
            #expect(await call(client, "/p.S/Unary", messages: [[1]]).status == .ok)
            #expect(server.statistics.tlsConnectionsOpen == 1)
            #expect(server.statistics.timeouts == 0)
            // The rest arrives: nothing was lost.
            halves[0].send(Array(hello[100...]))
            await wait(server) { $0.tlsHandshakesOpen == 1 }
        }
    }

    @Test func aPeerThatEndsInItsHelloIsClosed() async throws {
        let hello = try hello()
        try await withServer(limits: limits { _ in }, tls: localCertificate) { server in
            let peer = try RawConnection(port: server.port)
            peer.send(Array(hello[..<100]))
            await wait(server) { $0.connectionsOpen == 1 }
            peer.finishSending()
            #expect(try await peer.readToEnd().isEmpty)
        }
    }

    @Test func unfinishedHandshakesAreBounded() async throws {
        let hello = try hello()
        try await withServer(limits: limits { $0.tlsHandshakesMax = 2 }, tls: localCertificate) { server in
            var peers: [RawConnection] = []
            for count in 1...5 {
                peers.append(try RawConnection(port: server.port))
                peers[count - 1].send(hello)
                await wait(server) { $0.tlsHandshakesOpen + $0.tlsHandshakesWaiting == count }
                #expect(server.statistics.tlsHandshakesOpen == min(count, 2))
            }
            // The end of a handshake, and of one that waits.
            peers.removeFirst()
            await wait(server) { $0.tlsHandshakesWaiting == 2 }
            #expect(server.statistics.tlsHandshakesOpen == 2)
            peers.remove(at: 1)
            await wait(server) { $0.connectionsOpen == 3 }
            peers.removeAll()
            await wait(server) { $0.connectionsOpen == 0 }
            #expect(server.statistics.tlsHandshakesOpen == 0 && server.statistics.tlsHandshakesWaiting == 0)
        }
    }

    @Test func theOldestUnfinishedHandshakeEndsWhileOthersWait() async throws {
        let hello = try hello()
        let limits = limits {
            $0.tlsHandshakesMax = 1
            $0.tlsHandshakePatienceMilliseconds = 0
        }
        try await withServer(limits: limits, tls: localCertificate, grpc: echoService) { server in
            let first = try RawConnection(port: server.port)
            first.send(hello)
            await wait(server) { $0.tlsHandshakesOpen == 1 }
            // Nobody waits: it has as long as a handshake may take.
            #expect(server.statistics.timeouts == 0)
            let second = try RawConnection(port: server.port)
            second.send(hello)
            _ = try await first.readToEnd()
            #expect(server.statistics.timeouts == 1)
            // The peer sees the end of its socket first.
            await wait(server) { $0.connectionsOpen == 1 }
        }
    }

    /// No handshake of these addresses ever ends.
    @Test func addressesThatFinishNoHandshakeLeaveSomeForOthers() async throws {
        let hello = try hello()
        try await withServer(limits: limits { $0.tlsHandshakesMax = 8 }, tls: localCertificate, grpc: echoService) {
            server in
            let flood = try (0..<40).map { number in
                try RawConnection(port: server.port, host: number % 2 == 0 ? 2 : 3)
            }
            for peer in flood { peer.send(hello) }
            await wait(server) { $0.tlsHandshakesOpen + $0.tlsHandshakesWaiting == 40 }
            let client = try await connectSecurely(server)
            #expect(await call(client, "/p.S/Unary", messages: [[1]]).status == .ok)
            #expect(server.statistics.timeouts == 0)
        }
    }

    /// All of this test come from one address: whoever waited longest would be served too late.
    @Test func theNewestOfAnAddressIsServedFirst() async throws {
        let hello = try hello()
        try await withServer(limits: limits { $0.tlsHandshakesMax = 1 }, tls: localCertificate, grpc: echoService) {
            server in
            var flood = try (0..<20).map { _ in try RawConnection(port: server.port) }
            flood[0].send(hello)
            await wait(server) { $0.tlsHandshakesOpen == 1 }
            for peer in flood[1...] { peer.send(hello) }
            await wait(server) { $0.tlsHandshakesWaiting == 19 }
            async let client = connectSecurely(server)
            await wait(server) { $0.tlsHandshakesWaiting == 20 }
            flood.removeFirst()
            #expect(await call(try await client, "/p.S/Unary", messages: [[1]]).status == .ok)
            #expect(server.statistics.tlsHandshakesWaiting == 18)
        }
    }

    @Test(arguments: [0, 1, 5_000]) func unfinishedRecordsAreCounted(count: Int) async throws {
        try await withServer(limits: limits { _ in }, tls: localCertificate) { server in
            let peer = try await blocking { try SecurePeer(server) }
            #expect(server.statistics.tlsPartialRecords == 0)
            peer.sendPart(count)
            await wait(server) { $0.tlsPartialRecords == 1 }
            peer.connection.finishSending()
            await wait(server) { $0.connectionsOpen == 0 }
            #expect(server.statistics.tlsPartialRecords == 0)
        }
    }

    @Test func unfinishedRecordsAreBounded() async throws {
        let limits = limits {
            $0.tlsPartialRecordsMax = 4
            $0.tlsHandshakePatienceMilliseconds = 0
        }
        try await withServer(limits: limits, tls: localCertificate) { server in
            let peers = try await blocking { try (0..<8).map { _ in try SecurePeer(server) } }
            for peer in peers { peer.sendPart(100) }
            await wait(server) { $0.abuses == 4 && $0.connectionsOpen == 4 }
            #expect(server.statistics.tlsPartialRecords == 4)
        }
    }
}
