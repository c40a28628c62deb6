import Foundation
import HearthTestSupport
import Testing

/// What the page of the chat says.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct ChatTests {
    private static let (server, ann, bob) = (0, 1, 2)
    private static let offline = "* offline: lines are kept on this device"

    @Test func presenceAndOfflineLines() async throws {
        let example = try Example("Chat")
        let (first, port) = try await example.serve()
        let ann = try example.start(Self.ann, port: port, user: "ann")
        let bob = try example.start(Self.bob, port: port, user: "bob")
        try await ann.wait(for: "* bob is here")
        try await bob.wait(for: "* ann is here")
        try bob.type("Hello")
        try await ann.wait(for: "bob: Hello")
        bob.signal(SIGKILL)
        try await ann.wait(for: "* bob left")

        first.signal(SIGTERM)
        #expect(try await first.end().code == 0)
        // Once at the start, before the first connection.
        try await ann.wait(for: Self.offline, number: 2)
        try ann.type("Nobody is here")
        try ann.type("I write anyway")
        try await ann.wait(for: "ann: I write anyway")
        try ann.type("/quit")
        let ended = try await ann.end()
        #expect(ended.code == 0)
        #expect(ended.lines.last == "* The server does not have all lines yet: the next run sends them.")

        let (second, _) = try await example.serve(port: port)
        let again = try example.start(Self.bob, port: port, user: "bob")
        let annAgain = try example.start(Self.ann, port: port, user: "ann")
        try await again.wait(for: "ann: I write anyway")
        let received = again.lines.filter { $0.hasPrefix("ann: ") }
        #expect(received == ["ann: Nobody is here", "ann: I write anyway"])
        try annAgain.type("/quit")
        #expect(try await annAgain.end().code == 0)
        try await again.wait(for: "* ann left")
        second.signal(SIGTERM)
        _ = try await second.end()
    }

    @Test func commands() async throws {
        let example = try Example("Chat")
        let (server, port) = try await example.serve()
        let ann = try example.start(Self.ann, port: port, user: "ann")
        let bob = try example.start(Self.bob, port: port, user: "bob")
        try await ann.wait(for: "* bob is here")
        try ann.type("/offline")
        try await bob.wait(for: "* ann left")
        try ann.type("Kept")
        try ann.type("/nothing")
        try await ann.wait(for: "* There is no command /nothing: /offline, /online and /quit are all.")
        try ann.type("/online")
        try await bob.wait(for: "ann: Kept")
        try ann.type("/quit")
        #expect(try await ann.end().lines.last?.hasPrefix("* The server does not") == false)
        server.signal(SIGTERM)
        _ = try await server.end()
    }

    @Test(arguments: ["--user a/b", "--port 1", "--channel"])
    func misuse(options: String) async throws {
        let ended = try await Example("Chat").start("hearth-chat \(options)").end()
        #expect(ended.code == 2)
        #expect(ended.lines.count == 1 && ended.lines.first?.hasPrefix("hearth-chat: ") == true, "\(ended.lines)")
    }
}
