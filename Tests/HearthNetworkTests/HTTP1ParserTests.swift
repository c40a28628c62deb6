import Testing

@testable import HearthNetwork

/// A parser's events, with body pieces joined.
private struct Parsed: Equatable {
    var heads: [HTTP1Head] = []
    var bodies: [String] = []
    var ends = 0
    var failure: Int?
}

private func parse(_ string: String, pieceBytes: Int = .max, limits: NetworkLimits = NetworkLimits()) -> Parsed {
    var parser = HTTP1Parser(limits: limits)
    var parsed = Parsed()
    let bytes = Array(string.utf8)
    var start = 0
    while start < bytes.count {
        let end = pieceBytes < bytes.count - start ? start + pieceBytes : bytes.count
        let piece = Array(bytes[start..<end])
        start = end
        let isOver = piece.withUnsafeBytes { piece -> Bool in
            var position = 0
            while true {
                switch parser.next(piece, &position) {
                case .needsMore: return false
                case .head(let head):
                    parsed.heads.append(head)
                    parsed.bodies.append("")
                case .body(let range):
                    parsed.bodies[parsed.bodies.count - 1] += String(
                        decoding: UnsafeRawBufferPointer(rebasing: piece[range]), as: UTF8.self)
                case .end: parsed.ends += 1
                case .failure(let failure):
                    parsed.failure = failure.status
                    return true
                }
            }
        }
        if isOver { break }
    }
    return parsed
}

@Suite struct HTTP1ParserTests {
    @Test func readsARequest() throws {
        let parsed = parse("GET /a/b?c=%20d HTTP/1.1\r\nHost: example:80\r\nX-Name:  some value \t\r\n\r\n")
        let head = try #require(parsed.heads.first)
        #expect(head.method == "GET")
        #expect(head.target == "/a/b?c=%20d")
        #expect(head.authority == "example:80")
        #expect(head.headers == [HTTPHeader("host", "example:80"), HTTPHeader("x-name", "some value")])
        #expect(head.keepsAlive)
        #expect(parsed.ends == 1)
    }

    @Test func readsBodiesAndPipelinedRequests() {
        let parsed = parse(
            "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
                + "\r\nPOST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "5;name=value\r\nworld\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
                + "GET /3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        #expect(parsed.heads.map(\.target) == ["/1", "/2", "/3"])
        #expect(parsed.bodies == ["hello", "world0123456789", ""])
        #expect(parsed.ends == 3)
        #expect(parsed.failure == nil)
        #expect(parsed.heads.map(\.keepsAlive) == [true, true, true])
    }

    @Test(arguments: 1...40)
    func theSplitOfTheInputDoesNotMatter(pieceBytes: Int) {
        let string =
            "\r\n\r\nPOST /1?q HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\nhello\r\nworld"
            + "PUT /2 HTTP/1.1\r\nhost:h\r\ntransfer-encoding: Chunked\r\nConnection: foo, Close\r\n\r\n"
            + "3\r\nabc\r\n0010;x\r\n0123456789abcdef\r\n000\r\nA: b\r\nC: d\r\n\r\n"
        let whole = parse(string)
        #expect(whole.failure == nil)
        #expect(whole.bodies == ["hello\r\nworld", "abc0123456789abcdef"])
        #expect(parse(string, pieceBytes: pieceBytes) == whole)
    }

    @Test(arguments: [
        "GET / HTTP/1.1\nHost: h\n\n",
        "GET / HTTP/1.1\r\nHost: h\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n\n",
        "GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n folded: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\tc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nA: \u{0}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nA(b): c\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / http/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1x\r\nHost: h\r\n\r\n",
        "GET  HTTP/1.1\r\nHost: h\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET foo HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1 1\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ])
    func refusesWhatIsAmbiguous(request: String) {
        for pieceBytes in [Int.max, 1, 7] {
            let parsed = parse(request, pieceBytes: pieceBytes)
            #expect(parsed.failure == 400, "in pieces of \(pieceBytes)")
            #expect(parsed.heads.isEmpty)
        }
    }

    @Test(arguments: [
        "5\r\nhelloX\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "\r\nhello\r\n", "g\r\nhello\r\n",
        " 5\r\nhello\r\n", "5 \r\nhello\r\n", "-5\r\nhello\r\n", "0x5\r\nhello\r\n", "FFFFFFFFFFFFFFFFF\r\nhello\r\n",
        "5\r\r\nhello\r\n0\r\n\r\n", "0\r\nbad trailer\r\n\r\n", "0\r\n folded: x\r\n\r\n", "0\r\nA: b\n\r\n",
    ])
    func refusesBadChunks(chunks: String) {
        for pieceBytes in [Int.max, 1, 3] {
            let parsed = parse(
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, pieceBytes: pieceBytes)
            #expect(parsed.failure == 400)
            #expect(parsed.ends == 0)
        }
    }

    @Test(arguments: [
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505), ("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n", 417),
    ])
    func refusesWhatItCannotDo(request: String, status: Int) {
        #expect(parse(request).failure == status)
    }

    @Test func keepsTheLimits() {
        var limits = NetworkLimits()
        limits.headBytesMax = 200
        limits.headFieldsMax = 4
        limits.targetBytesMax = 50
        limits.chunkLineBytesMax = 30
        let start = "GET / HTTP/1.1\r\nHost: h\r\n"
        let name = String(repeating: "a", count: 200)
        for pieceBytes in [Int.max, 1] {
            #expect(parse(start + "A: \(name)\r\n\r\n", pieceBytes: pieceBytes, limits: limits).failure == 431)
            #expect(parse(start + "A: \(name)", pieceBytes: pieceBytes, limits: limits).failure == 431)
            // An error after the limit must not be reported, because a parser that reads byte by byte would not reach
            // it.
            #expect(parse(start + "A: \(name)\n\r\n", pieceBytes: pieceBytes, limits: limits).failure == 431)
            let fields = String(repeating: "A: b\r\n", count: 4)
            #expect(parse(start + fields + "\r\n", pieceBytes: pieceBytes, limits: limits).failure == 431)
            let target = "/" + String(repeating: "t", count: 50)
            let request = "GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n"
            #expect(parse(request, pieceBytes: pieceBytes, limits: limits).failure == 414)
            let chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            #expect(parse(chunked + "1;\(name)\r\n", pieceBytes: pieceBytes, limits: limits).failure == 400)
            let trailers = "0\r\n" + String(repeating: "A: bcdefghij\r\n", count: 5)
            #expect(parse(chunked + trailers, pieceBytes: pieceBytes, limits: limits).failure == 400)
        }
    }

    @Test func splitsAnAbsoluteTarget() throws {
        let head = try #require(parse("GET http://a.example/x?y HTTP/1.1\r\nHost: b\r\n\r\n").heads.first)
        #expect(head.authority == "a.example")
        #expect(head.target == "/x?y")
        #expect(parse("OPTIONS * HTTP/1.1\r\nHost: b\r\n\r\n").heads.first?.target == "*")
    }

    @Test(arguments: [
        ("HTTP/1.1", "", true), ("HTTP/1.1", "Connection: close\r\n", false), ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: Keep-Alive\r\n", true), ("HTTP/1.1", "Connection: x, close\r\n", false),
    ])
    func knowsWhetherTheConnectionStays(version: String, field: String, stays: Bool) {
        #expect(parse("GET / \(version)\r\nHost: h\r\n\(field)\r\n").heads.first?.keepsAlive == stays)
    }
}
