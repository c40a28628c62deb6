@testable import HearthLoadClient
import HearthModel
@testable import HearthNetwork
import HearthTestSupport
import Testing

/// Responses of all sizes around the end of the loop's scratch, in which frames of many streams are collected: nghttp2
/// hands out a frame after the DATA frames that it has had copied there.
@Suite struct OutputSizesTests {
    private static let scratchBytes = EventLoop.scratchBytes
    private static let frameBytes = 16_384 + 9

    private static let pattern = (0..<(400 << 10)).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8)) }

    /// The bytes of one response. Those of neighbouring sizes differ from the first byte on.
    private static func body(_ size: Int) -> [UInt8] { Array(pattern[(size % 251)..<(size % 251 + size)]) }

    /// Steps down to 64 KiB around the edge, and every byte before it, where the last frame of a response and its
    /// trailers meet the end.
    private static let sizes =
        Array(stride(from: scratchBytes - (64 << 10), through: scratchBytes + (64 << 10), by: 2_039))
        + Array(scratchBytes - 400...scratchBytes + 40)

    /// A service whose path is the size of its response.
    private static func sized(_ status: Status = .ok, trailers: [HTTPHeader] = []) -> @Sendable (GRPCCall) -> Void {
        { call in
            call.unary { _ in
                call.send(body(Int(call.path.dropFirst(3)) ?? 0))
                call.finish(status, trailers: trailers)
            }
        }
    }

    @Test(arguments: [0, 100, 1_024])
    func responsesOfAllSizesComeWhole(messageBytes: Int) async throws {
        // Each byte of it has three in the trailers.
        let status = messageBytes == 0 ? Status.ok : .aborted(String(repeating: "%", count: messageBytes))
        try await withServer(grpc: Self.sized(status)) { server in
            let client = try await connect(server)
            for size in Self.sizes + (messageBytes > 100 ? Array(stride(from: 159_000, to: 164_000, by: 61)) : []) {
                let result = await call(client, "/p/\(size)", messages: [[]])
                #expect(result.status.code == status.code && result.messages == [Self.body(size)], "\(size) bytes")
                if result.messages.isEmpty { return }
            }
            #expect(server.statistics.connectionsOpen == 1)
        }
    }

    @Test func trailersOfSeveralFramesComeWhole() async throws {
        let trailers = (0..<12).map { HTTPHeader("x-\($0)", String(repeating: "\($0 % 10)", count: 5_000)) }
        try await withServer(grpc: Self.sized(trailers: trailers)) { server in
            let client = try await connect(server)
            // The trailers have up to four frames.
            let edges = [1, 2, 3].map { Self.scratchBytes - $0 * Self.frameBytes }
            let around = edges.flatMap { Array(stride(from: $0 - 400, to: $0 + 40, by: 11)) }
            for size in Array(stride(from: 90_000, to: 230_000, by: 4_051)) + around {
                let result = await call(client, "/p/\(size)", messages: [[]])
                #expect(result.status == .ok && result.messages == [Self.body(size)], "\(size) bytes")
                #expect(result.trailers.filter { $0.name.hasPrefix("x-") } == trailers)
                if result.messages.isEmpty { return }
            }
        }
    }

    /// All windows open at once: the frames of all streams are sent in one flush.
    @Test func responsesOfManyStreamsThatWaitForWindowsComeWhole() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            let size = Int(exchange.head.path.dropFirst()) ?? 0
            exchange.respond(status: 403, headers: [], body: Self.body(size))
        }
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SeededGenerator(seed: seed)
        /// Completes sizes by one that ends this far before a multiple of the scratch.
        func completed(_ sizes: [Int], by distance: Int) -> [Int] {
            let used = sizes.reduce(0) { $0 + $1 + 9 } + 9
            return sizes + [max(1, Self.scratchBytes - used % Self.scratchBytes - distance)]
        }
        var sets = (-10...60).map { completed(Array(repeating: 4_000, count: 39), by: $0) }
        for _ in 0..<60 {
            let sizes = (0..<random.number(1..<50)).map { _ in random.number(1..<9_000) }
            sets.append(completed(sizes, by: random.number(-40..<200)))
        }
        try await withServer(http: handler) { server in
            for sizes in sets {
                // The last request is incomplete: RST_STREAM follows its response.
                let bodies = try await Self.bodies(of: sizes, from: server)
                #expect(bodies.map(\.count) == sizes, "seed \(seed)")
                #expect(bodies == sizes.map { Self.body($0) }, "seed \(seed)")
            }
        }
    }

    /// Requests responses of these sizes with windows of 0, and opens the windows when all heads are there.
    private static func bodies(of sizes: [Int], from server: NetworkServer) async throws -> [[UInt8]] {
        let connection = try RawConnection(port: server.port)
        let total = sizes.reduce(0, +)
        func settings(window: Int) -> [UInt8] {
            RawHTTP2.frame(type: 4, payload: [0, 4] + RawHTTP2.bigEndian(window))
        }
        var input = RawHTTP2.preface + settings(window: 0)
        input += RawHTTP2.frame(type: 8, payload: RawHTTP2.bigEndian(total))
        for (position, size) in sizes.enumerated() {
            input += RawHTTP2.request(
                stream: 2 * position + 1, path: "/\(size)", contentType: "text/plain",
                flags: position == sizes.count - 1 ? 4 : 5)
        }
        connection.send(input)
        var bodies = [[UInt8]](repeating: [], count: sizes.count)
        var buffered: [UInt8] = []
        var heads = 0
        var ends = 0
        while ends < sizes.count {
            buffered += try await connection.readSome()
            let frames = RawHTTP2.frames(buffered)
            buffered.removeFirst(frames.reduce(0) { $0 + 9 + $1.payload.count })
            for frame in frames {
                if frame.type == 0 { bodies[(frame.stream - 1) / 2] += frame.payload }
                if frame.type == 0, frame.flags & 1 == 1 { ends += 1 }
                guard frame.type == 1 else { continue }
                heads += 1
                if heads == sizes.count { connection.send(settings(window: total)) }
            }
        }
        return bodies
    }

    @Test(.enabled(if: localCertificate != nil, "there is no /usr/bin/openssl")) func largeResponsesOverTLSComeWhole()
        async throws
    {
        let tls = try #require(localCertificate)
        try await withServer(tls: tls, grpc: Self.sized(.aborted(String(repeating: "%", count: 700)))) { server in
            let client = try await connectSecurely(server)
            for size in stride(from: 160_500, to: 163_900, by: 53) {
                let result = await call(client, "/p/\(size)", messages: [[]])
                #expect(result.status.code == .aborted && result.messages == [Self.body(size)], "\(size) bytes")
                if result.messages.isEmpty { return }
            }
        }
    }
}
