import Testing

@testable import HearthNetwork

/// Valid and invalid values of `Host` and `:authority`.
@Suite struct AuthorityTests {
    static let wellFormed = [
        "", "localhost", "localhost:8080", "localhost:", "127.0.0.1:1", "[::1]", "[::1]:8080", "[fe80::1%25eth0]:1",
        "a_b",
        "xn--bcher-kva.example", "a%20b",
    ]
    static let malformed = [
        "a b", "a/b", "a?b", "a#b", "user@a", "a:b", "a:1:2", "a:123456", "[::1", "::1]", "[]", "[::1]x", "[::1]:x",
        "[a b]",
        "ä", "a\\b", "a\"b", "<a>",
    ]

    @Test(arguments: wellFormed) func valid(_ string: String) { #expect(Authority.isValid(string)) }

    @Test(arguments: malformed) func invalid(_ string: String) { #expect(!Authority.isValid(string)) }

    @Test(arguments: ["a b", "a/b", "user@a", "a:b", "[::1"])
    func aMalformedHostIsRefused(_ host: String) async throws {
        try await withServer(http: { $0.respond(status: 200, headers: [], body: []) }) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            #expect(try await connection.readAnswer().status == 400)
        }
    }
}
