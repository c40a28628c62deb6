import HearthModel
import HearthTestSupport
import Testing

@testable import HearthNetwork

/// Changes, drops, repeats and inserts random bytes.
private func mutated(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...6, using: &random) {
        guard !bytes.isEmpty else { break }
        let position = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes[position] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 2: bytes.remove(at: position)
        case 3: bytes.insert(UInt8.random(in: 0...255, using: &random), at: position)
        default:
            let end = min(bytes.count, position + Int.random(in: 1...40, using: &random))
            bytes.insert(contentsOf: bytes[position..<end], at: position)
        }
    }
    return bytes
}

@Suite struct RobustnessTests {
    private static let http1 = Array(
        ("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
            + "POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nworld\r\n0\r\nA: b\r\n\r\n"
            + "GET /3 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").utf8)

    private static var http2: [UInt8] {
        let message: [UInt8] = [0, 0, 0, 0, 3, 1, 2, 3]
        var bytes = RawHTTP2.preface + RawHTTP2.request(stream: 1, path: "/p.S/Unary", more: [("grpc-timeout", "1S")])
        bytes += RawHTTP2.frame(type: 0, flags: 1, stream: 1, payload: message)
        bytes += RawHTTP2.request(stream: 3, path: "/p.S/Bidi")
        bytes += RawHTTP2.frame(type: 0, stream: 3, payload: message + message)
        bytes += RawHTTP2.frame(type: 8, payload: RawHTTP2.bigEndian(1_000))
        bytes += RawHTTP2.frame(type: 6, payload: [1, 2, 3, 4, 5, 6, 7, 8])
        bytes += RawHTTP2.frame(type: 3, stream: 3, payload: RawHTTP2.bigEndian(8))
        bytes += RawHTTP2.request(stream: 5, contentType: "text/plain", flags: 5)
        return bytes
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func mutatedRequestsHurtNobodyElse(seed: UInt64) async throws {
        var limits = NetworkLimits()
        limits.messageBytesMax = 10_000
        let http: @Sendable (HTTPExchange) -> Void = { exchange in
            exchange.collectBody(limitBytes: 1_000) { _ in exchange.respond(status: 200, headers: [], body: [1]) }
        }
        try await withServer(limits: limits, http: http, grpc: echoService) { server in
            var random = SeededGenerator(seed: seed)
            let client = try await connect(server)
            for round in 0..<150 {
                let connection = try RawConnection(port: server.port)
                let bytes = mutated(round % 2 == 0 ? Self.http2 : Self.http1, &random)
                let split = Int.random(in: 0...bytes.count, using: &random)
                connection.send(Array(bytes[..<split]))
                if round % 3 == 0 { await Task.yield() }
                connection.send(Array(bytes[split...]))
                connection.finishSending()
                _ = try await connection.readToEnd()
                if round % 50 == 0 { #expect(await call(client, "/p.S/Unary", messages: [[1]]).status == .ok) }
            }
            // The last ones linger until their peers have closed, too.
            await until { server.statistics.connectionsOpen <= 1 }
            #expect(server.statistics.streamsOpen == 0)
        }
    }

    /// A parser's events must not depend on the pieces, for valid and for invalid input.
    @Test(arguments: [11, 12, 13] as [UInt64])
    func theParsersEventsDoNotDependOnThePieces(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let bytes = mutated(Self.http1, &random)
            let whole = events(bytes, pieceBytes: bytes.count + 1)
            let pieces = events(bytes, pieceBytes: Int.random(in: 1...20, using: &random))
            #expect(whole == pieces, "\(String(decoding: bytes, as: UTF8.self).debugDescription)")
        }
    }

    private func events(_ bytes: [UInt8], pieceBytes: Int) -> [String] {
        var parser = HTTP1Parser(limits: NetworkLimits())
        var events: [String] = []
        var body = ""
        var start = 0
        while start < bytes.count {
            let piece = Array(bytes[start..<min(bytes.count, start + pieceBytes)])
            start += piece.count
            let isOver = piece.withUnsafeBytes { piece -> Bool in
                var position = 0
                while true {
                    switch parser.next(piece, &position) {
                    case .needsMore: return false
                    case .head(let head): events.append("\(head)")
                    case .body(let range): body += piece[range].map { String($0) }.joined(separator: ",") + ","
                    case .end:
                        events.append("end \(body)")
                        body = ""
                    case .failure(let failure):
                        events.append("\(failure) \(body)")
                        return true
                    }
                }
            }
            if isOver { break }
        }
        return events
    }
}
