import Foundation
import HearthTestSupport
import Testing

/// What the page of the served bundle says.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct FrontPageTests {
    @Test func theBundleIsServedAndReadOffline() async throws {
        let example = try Example("FrontPage")
        let (server, port) = try await example.serve()
        let made = try await example.start(1, port: port).end()
        #expect(made.code == 0, "\(made.lines)")
        let latest = ["- Snow in the hills", "- The fair begins on Friday", "- The bridge is open"]
        let client = try await example.start(2, port: port, user: "reader").end()
        #expect(client.lines == ["4 documents loaded"] + latest)

        server.signal(SIGTERM)
        #expect(try await server.end().code == 0)
        let offline = try await example.start(3, port: port, user: "reader").end()
        #expect(offline.code == 0 && offline.lines == latest)
        let other = try await example.start(3, port: port, user: "somebody else").end()
        #expect(other.code == 1)
        #expect(other.lines == ["hearth-front-page: The cache has no bundle yet: run without --offline first."])
    }
}
