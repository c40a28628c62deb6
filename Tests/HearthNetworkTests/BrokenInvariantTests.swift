import Glibc
import HearthConcurrency
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthLoadClient
@testable import HearthNetwork

/// Faults of the program that are planted: each costs its connection or its request, and nothing else.
@Suite struct BrokenInvariantTests {
    /// What was reported.
    private final class Reports: Sendable {
        private let reports = Mutex<[(broken: BrokenInvariant, unreported: Int)]>([])
        var all: [(broken: BrokenInvariant, unreported: Int)] { reports.withLock { $0 } }
        var conditions: [String] { all.map { "\($0.broken.condition)" } }

        func invariants(now: (@Sendable () -> UInt64)? = nil) -> BrokenInvariants {
            let report: BrokenInvariants.Report = { broken, unreported in
                self.reports.withLock { $0.append((broken, unreported)) }
            }
            guard let now else { return BrokenInvariants(report: report) }
            return BrokenInvariants(now: now, report: report)
        }
    }

    /// Sends one byte for each that it receives, or more than its loop's scratch has space for.
    private final class Driver: ChannelDriver, @unchecked Sendable {
        private let isFaulty: Bool
        private let channel: SocketChannel
        private var due = 0

        init(_ channel: SocketChannel, isFaulty: Bool) {
            self.channel = channel
            self.isFaulty = isFaulty
        }

        func received(_ bytes: UnsafeRawBufferPointer) {
            due += bytes.count
            channel.flushLater()
        }
        func receivedEnd() { channel.close() }
        func produceOutput(into scratch: OutputScratch) throws(BrokenInvariant) {
            let bytes = [UInt8](repeating: 7, count: isFaulty ? scratch.space + 1 : due)
            due = 0
            try bytes.withUnsafeBufferPointer { bytes throws(BrokenInvariant) in
                if let base = bytes.baseAddress { try scratch.append(base, bytes.count) }
            }
        }
        func channelClosed() {}
    }

    @Test func aConnectionThatWouldWriteBeyondTheScratchEndsAlone() async throws {
        let reports = Reports()
        let loop = try EventLoop(index: 97, brokenInvariants: reports.invariants())
        try loop.start()
        func peer(isFaulty: Bool) -> Int32 {
            var pair: [Int32] = [0, 0]
            socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair)
            let descriptor = pair[0]
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            loop.execute {
                let channel = SocketChannel(
                    loop: loop, descriptor: descriptor, remoteAddress: "192.0.2.1:1", limits: NetworkLimits(),
                    counters: LoopCounters())
                channel.driver = Driver(channel, isFaulty: isFaulty)
                #expect(channel.start())
                // The table of a server would own it.
                loop.schedule(afterMilliseconds: 3_600_000) { channel.close() }
            }
            return pair[1]
        }
        let (sound, faulty) = (peer(isFaulty: false), peer(isFaulty: true))
        func exchange(_ descriptor: Int32) async throws -> [UInt8] {
            try await blocking {
                var bytes: [UInt8] = [1, 2, 3]
                #expect(send(descriptor, &bytes, 3, Int32(MSG_NOSIGNAL)) == 3)
                let count = recv(descriptor, &bytes, 3, 0)
                return Array(bytes[..<max(0, count)])
            }
        }
        #expect(try await exchange(sound) == [7, 7, 7])
        #expect(try await exchange(faulty).isEmpty)
        #expect(try await exchange(sound) == [7, 7, 7])
        #expect(reports.conditions == ["output fits into the scratch"])
        #expect(reports.all.first?.broken.stack.isEmpty == false)
        close(sound)
        close(faulty)
        try await blocking { loop.stopAndJoin() }
    }

    @Test func aFaultOfAHandlerResetsItsStreamAlone() async throws {
        let reports = Reports()
        let faults = reports.invariants()
        let waiting = Mutex<[HTTPExchange]>([])
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            switch exchange.head.path {
            case "/wait": waiting.withLock { $0.append(exchange) }
            case "/write": exchange.write([1])
            case "/end": exchange.end()
            case "/twice":
                exchange.start(status: 200, headers: [])
                exchange.respond(status: 500, headers: [], body: [])
            default: exchange.respond(status: 200, headers: [], body: [])
            }
        }
        try await withServer(faults: faults, http: handler) { server in
            let client = try await connect(server)
            async let answer = request(client, "GET", "/wait")
            while waiting.withLock({ $0.isEmpty }) { await Task.yield() }
            for path in ["/write", "/end", "/twice"] {
                await #expect(throws: Status.self) { try await request(client, "GET", path) }
            }
            for exchange in waiting.withLock({ $0 }) {
                exchange.loop.execute { exchange.respond(status: 201, headers: [], body: []) }
            }
            #expect(try await answer.status == 201)
            #expect(server.statistics.connectionsOpen == 1)
            #expect(server.statistics.brokenInvariants == 3)
            #expect(
                reports.conditions
                    == ["a response begins with start", "a response begins with start", "a request has one response"])
        }
    }

    @Test func aLongerBodyThanItsLengthEndsItsConnectionAlone() async throws {
        let reports = Reports()
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            let isFaulty = exchange.head.path == "/faulty"
            exchange.respond(
                status: 200, headers: [HTTPHeader("content-length", isFaulty ? "2" : "3")], body: [1, 2, 3])
        }
        try await withServer(faults: reports.invariants(), http: handler) { server in
            let (faulty, sound) = (try RawConnection(port: server.port), try RawConnection(port: server.port))
            sound.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await sound.readAnswer().body == [1, 2, 3])
            faulty.send("GET /faulty HTTP/1.1\r\nHost: h\r\n\r\n")
            _ = try await faulty.readToEnd()
            sound.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await sound.readAnswer().body == [1, 2, 3])
            #expect(reports.conditions == ["a response's body is not longer than its content-length"])
        }
    }

    @Test func theLogGetsSomeOfThemAMinute() {
        let reports = Reports()
        let clock = Atomic<Int>(1)
        let faults = reports.invariants(now: { UInt64(clock.load(ordering: .relaxed)) * 1_000_000_000 })
        for _ in 0..<20 { faults.note(BrokenInvariant("water flows downhill")) }
        #expect(faults.count == 20)
        #expect(reports.all.map(\.unreported) == Array(repeating: 0, count: BrokenInvariants.reportsMax))
        clock.store(61, ordering: .relaxed)
        for _ in 0..<2 { faults.note(BrokenInvariant("water flows downhill")) }
        #expect(reports.all.map(\.unreported).suffix(2) == [20 - BrokenInvariants.reportsMax, 0])
    }

    /// nghttp2 sends heads of up to 64 KB. A client of a larger one waited for ever.
    @Test(arguments: [false, true])
    func aHeadThatIsTooLargeResetsItsStream(isTrailer: Bool) async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            guard exchange.head.path == "/large" else { return exchange.respond(status: 200, headers: [], body: []) }
            let large = (0..<5).map { HTTPHeader("x-\($0)", String(repeating: "~", count: 16_000)) }
            guard isTrailer else { return exchange.respond(status: 200, headers: large, body: []) }
            exchange.start(status: 200, headers: [])
            exchange.write([1])
            exchange.end(trailers: large)
        }
        try await withServer(http: handler) { server in
            let client = try await connect(server)
            await #expect(throws: Status.self) { try await request(client, "GET", "/large") }
            #expect(try await request(client, "GET", "/").status == 200)
            #expect(server.statistics.streamsOpen == 0 && server.statistics.connectionsOpen == 1)
        }
    }
}
