@testable import HearthLoadClient
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthNetwork

/// The bound on what established connections with TLS take: those without a request give way to a new one.
@Suite(.enabled(if: localCertificate != nil, "there is no /usr/bin/openssl")) struct TLSConnectionBoundTests {
    private static let http1 = TLSAdmission.connectionBytes
    private static let http2 = TLSAdmission.connectionBytes + TLSAdmission.http2Bytes

    private func withSecureServer(
        bytesMax: Int, loopCount: Int = 1, _ change: (inout NetworkLimits) -> Void = { _ in },
        _ body: (NetworkServer) async throws -> Void
    ) async throws {
        var limits = NetworkLimits()
        limits.tlsConnectionBytesMax = bytesMax
        change(&limits)
        try await withServer(limits: limits, loopCount: loopCount, tls: localCertificate, grpc: echoService, body)
    }

    /// Opens a stream, and returns what ends it.
    private func openStream(_ client: HTTP2Client) async throws -> @Sendable () -> Void {
        let answer = Box<[UInt8]>()
        nonisolated(unsafe) var opened: GRPCClientCall?
        await onClientLoop {
            let call = GRPCClient(client).open(path: "/p.S/Bidi")
            call.onMessage = { answer.set($0) }
            call.send([1])
            opened = call
        }
        #expect(try await answer.value() == [1])
        let call = opened
        return { clientLoop.execute { call?.halfClose() } }
    }

    @Test func anIdleConnectionGetsAGoAway() async throws {
        try await withSecureServer(bytesMax: 2 * Self.http2) { server in
            let goAway = Box<UInt32>()
            let first = try await connectSecurely(server)
            await onClientLoop { first.onGoAway = { goAway.set($0) } }
            #expect(await call(first, "/p.S/Unary", messages: [[1]]).status == .ok)
            let second = try await connectSecurely(server)
            #expect(await call(second, "/p.S/Unary", messages: [[1]]).status == .ok)
            let third = try await connectSecurely(server)
            #expect(await call(third, "/p.S/Unary", messages: [[1]]).status == .ok)
            #expect(try await goAway.value() == 0)
            #expect(await call(second, "/p.S/Unary", messages: [[1]]).status == .ok)
            #expect(server.statistics.connectionsDisplaced == 1)
            #expect(server.statistics.connectionsRefused == 0)
            #expect(server.statistics.tlsConnectionsOpen == 2)
        }
    }

    @Test func connectionsInUseStay() async throws {
        try await withSecureServer(bytesMax: 2 * Self.http2) { server in
            let clients = [try await connectSecurely(server), try await connectSecurely(server)]
            let endFirst = try await openStream(clients[0])
            let endSecond = try await openStream(clients[1])
            await #expect(throws: Status.self) { try await connectSecurely(server) }
            #expect(server.statistics.connectionsRefused == 1)
            #expect(server.statistics.connectionsDisplaced == 0)
            // One of them becomes idle. That may be noticed a moment later.
            endFirst()
            await wait(server) { $0.streamsOpen == 1 }
            var third: HTTP2Client?
            while third == nil { third = try? await connectSecurely(server) }
            #expect(await call(try #require(third), "/p.S/Unary", messages: [[1]]).status == .ok)
            #expect(server.statistics.connectionsDisplaced == 1)
            #expect(await call(clients[1], "/p.S/Unary", messages: [[1]]).status == .ok)
            endSecond()
        }
    }

    @Test func moreFitWithHTTP1() async throws {
        try await withSecureServer(bytesMax: 2 * Self.http2) { server in
            var peers = try await blocking { try (0..<3).map { _ in try SecurePeer(server) } }
            await wait(server) { $0.tlsConnectionsOpen == 3 }
            #expect(server.statistics.connectionsDisplaced == 0)
            peers.append(try await blocking { try SecurePeer(server) })
            #expect(try await peers[3].isServed())
            #expect(server.statistics.connectionsDisplaced == 1)
            #expect(server.statistics.tlsConnectionsOpen == 3)
        }
    }

    @Test func theAddressWithMostGivesWay() async throws {
        try await withSecureServer(bytesMax: 4 * Self.http1) { server in
            // It is idle for longest, and never sent anything.
            let bystander = try await blocking { try SecurePeer(server, host: 2) }
            var crowd: [SecurePeer] = []
            for count in 1...20 {
                let peer = try await blocking { try SecurePeer(server) }
                #expect(try await peer.isServed())
                crowd.append(peer)
                #expect(server.statistics.connectionsDisplaced == max(0, count - 3))
            }
            #expect(try await crowd[0].readSome() == nil)
            #expect(try await bystander.isServed())
            #expect(server.statistics.connectionsRefused == 0)
        }
    }

    /// Each loop closes only its own: who comes later replaces the crowd on all loops.
    @Test func aCrowdGivesWayOnAllLoops() async throws {
        try await withSecureServer(bytesMax: 6 * Self.http1, loopCount: 2) { server in
            let crowd = try await blocking { try (0..<6).map { _ in try SecurePeer(server) } }
            for peer in crowd { #expect(try await peer.isServed()) }
            var others: [SecurePeer] = []
            for host: UInt32 in 2...5 {
                others.append(try await blocking { try SecurePeer(server, host: host) })
                #expect(try await others[others.count - 1].isServed())
            }
            for other in others { #expect(try await other.isServed()) }
            #expect(server.statistics.connectionsDisplaced == 4)
            #expect(server.statistics.tlsConnectionsOpen == 6)
        }
    }

    /// Connections on one loop are all in use; new ones go to the other.
    @Test func aLoopThatCannotMakeWayIsAvoided() async throws {
        try await withSecureServer(bytesMax: 4 * Self.http2, loopCount: 2) { server in
            let clients = [
                try await connectSecurely(server), try await connectSecurely(server), try await connectSecurely(server),
                try await connectSecurely(server),
            ]
            await wait(server) { $0.tlsConnectionsOpen == 4 }
            // The loops have them alternately.
            let ends = [try await openStream(clients[0]), try await openStream(clients[2])]
            for _ in 0..<10 {
                var served: HTTP2Client?
                while served == nil, server.statistics.connectionsRefused <= 1 {
                    served = try? await connectSecurely(server)
                }
                #expect(await call(try #require(served), "/p.S/Unary", messages: [[1]]).status == .ok)
            }
            // The loop may be tried once.
            #expect(server.statistics.connectionsRefused <= 1)
            #expect(server.statistics.connectionsDisplaced == 10)
            for end in ends { end() }
        }
    }

    /// Without ALPN a connection can say at any time that it speaks HTTP/2.
    @Test func connectionsThatBecomeHTTP2AreBounded() async throws {
        try await withSecureServer(bytesMax: 3 * Self.http1, { $0.tlsHandshakesMax = 1 }) { server in
            let peers = try await blocking { try (0..<3).map { _ in try SecurePeer(server, protocols: []) } }
            await wait(server) { $0.tlsConnectionsOpen == 3 }
            try await peers[0].send(RawHTTP2.preface)
            #expect(try await peers[0].readSome() != nil)
            try await peers[1].send(RawHTTP2.preface)
            #expect(try await peers[1].readSome() == nil)
            #expect(server.statistics.connectionsRefused == 1)
        }
    }
}
