import HearthTestSupport
import HearthModel
import Testing

@testable import HearthNetwork

@Suite struct ConnectionLimitTests {
    private let head = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    private func server(
        connectionsMax: Int, _ body: (NetworkServer) async throws -> Void
    ) async throws {
        var limits = NetworkLimits()
        limits.connectionsMax = connectionsMax
        try await withServer(
            limits: limits,
            http: { exchange in
                if exchange.head.target != "/wait" { exchange.respond(status: 200, headers: [], body: []) }
            }, body)
    }

    @Test func connectionsWithoutARequestAreClosedForOthers() async throws {
        try await server(connectionsMax: 3) { server in
            let busy = try RawConnection(port: server.port)
            busy.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
            let idle = try RawConnection(port: server.port)
            idle.send(head)
            #expect(try await idle.readAnswer().status == 200)
            let silent = try RawConnection(port: server.port)
            while server.statistics.connectionsOpen < 3 || server.statistics.httpRequests < 2 { await Task.yield() }

            // The one that never sent anything is closed first, although the other has been idle for longer.
            let fourth = try RawConnection(port: server.port)
            fourth.send(head)
            #expect(try await fourth.readAnswer().status == 200)
            #expect(try await silent.readToEnd().isEmpty)
            idle.send(head)
            #expect(try await idle.readAnswer().status == 200)

            let fifth = try RawConnection(port: server.port)
            fifth.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await fourth.readToEnd().isEmpty)
            let sixth = try RawConnection(port: server.port)
            sixth.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await idle.readToEnd().isEmpty)
            while server.statistics.httpRequests < 6 { await Task.yield() }

            // All are in use.
            #expect(try await RawConnection(port: server.port).readToEnd().isEmpty)
            #expect(server.statistics.connectionsDisplaced == 3)
            #expect(server.statistics.connectionsRefused == 1)
            withExtendedLifetime((busy, fifth, sixth)) {}
        }
    }

    @Test func anIdleHTTP2ConnectionGetsAGoAway() async throws {
        try await server(connectionsMax: 1) { server in
            let client = try await connect(server)
            let goAway = Box<UInt32>()
            await onClientLoop { client.onGoAway = { goAway.set($0) } }
            #expect(try await request(client, "GET", "/").status == 200)
            let second = try RawConnection(port: server.port)
            second.send(head)
            #expect(try await second.readAnswer().status == 200)
            #expect(try await goAway.value() == 0)
        }
    }

    @Test func theAddressWithTheMostConnectionsLosesThemFirst() {
        func candidate(_ address: Substring, silent: Bool = false, since: UInt64) -> IdleConnections.Candidate {
            IdleConnections.Candidate(address: address, isSilent: silent, since: since)
        }
        let candidates = [
            candidate("a", since: 5), candidate("a", since: 4), candidate("a", silent: true, since: 9),
            candidate("b", silent: true, since: 1), candidate("c", since: 2), candidate("c", since: 3),
        ]
        // Two more of c are in use.
        let counts: [Substring: Int] = ["a": 3, "b": 1, "c": 4]
        func chosen(_ max: Int) -> [Int] { IdleConnections.chosen(candidates, counts: counts, max: max) }
        #expect(chosen(1) == [4])
        #expect(chosen(3) == [4, 2, 5])
        #expect(chosen(10) == [4, 2, 5, 1, 3, 0])
    }
}
