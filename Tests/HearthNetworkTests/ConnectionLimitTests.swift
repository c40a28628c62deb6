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
        let (a, b, c): (UInt64, UInt64, UInt64) = (1, 2, 3)
        func candidate(_ account: UInt64, silent: Bool = false, since: UInt64) -> IdleConnections.Candidate {
            IdleConnections.Candidate(account: account, isSilent: silent, since: since, size: 10)
        }
        let candidates = [
            candidate(a, since: 5), candidate(a, since: 4), candidate(a, silent: true, since: 9),
            candidate(b, silent: true, since: 1), candidate(c, since: 2), candidate(c, since: 3),
        ]
        // Two more of c are in use.
        let counts = [a: 3, b: 1, c: 4]
        func chosen(_ size: Int) -> [Int] { IdleConnections.chosen(candidates, counts: counts, size: size) }
        #expect(chosen(1) == [4])
        #expect(chosen(10) == [4])
        #expect(chosen(21) == [4, 2, 5])
        #expect(chosen(100) == [4, 2, 5, 1, 3, 0])
    }

    @Test(arguments: [
        ("[2001:db8:0:1::5]:7000", "[2001:db8:0:1:a:b:c:d]:80", true),
        ("[2001:db8:0:1::5]:1", "[2001:db8:0:2::5]:1", false),
        ("192.0.2.1:5000", "[::ffff:192.0.2.1]:7", true), ("192.0.2.1:5000", "192.0.2.2:5000", false),
    ])
    func connectionsOfAnIPv6NetworkCountTogether(first: String, second: String, together: Bool) throws {
        let loop = try EventLoop()
        let counters = LoopCounters()
        let accounts = [first, second].map { address in
            SocketChannel(
                loop: loop, descriptor: -1, remoteAddress: address, limits: NetworkLimits(), counters: counters
            ).account
        }
        #expect((accounts[0] == accounts[1]) == together)
    }

    @Test func theGreatestNumberOfConnectionsOfAnAccountIsKnown() {
        var random = SeededGenerator(seed: 7)
        var accounts = AccountCounts()
        var open: [UInt64] = []
        for _ in 0..<2_000 {
            if random.next() % 100 < 55 || open.isEmpty {
                open.append(random.next() % 10)
                accounts.add(open[open.count - 1])
            } else {
                accounts.remove(open.remove(at: Int(random.next() % UInt64(open.count))))
            }
            let counts = open.reduce(into: [:]) { $0[$1, default: 0] += 1 }
            #expect(accounts.counts == counts)
            #expect(accounts.greatest == counts.values.max() ?? 0)
        }
    }
}
