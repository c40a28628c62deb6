import Glibc
import HearthModel
import HearthNetwork
import HearthTestSupport
import Synchronization
import Testing

/// The part of a loop's tick that the connections of one account have. Time is simulated: each request takes a millisecond of
/// it.
@Suite struct TickShareTests {
    private final class Socket: SimulatedSocket {
        var channel: SocketChannel?
        var input: [UInt8] = []
        var sentBytes = 0

        func started(_ channel: SocketChannel) { self.channel = channel }

        func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
            let count = min(buffer.count, input.count)
            if count == 0 {
                errno = EAGAIN
                return -1
            }
            buffer.copyBytes(from: input[..<count])
            input.removeFirst(count)
            return count
        }

        func send(_ bytes: UnsafeRawBufferPointer) -> Int {
            sentBytes += bytes.count
            return bytes.count
        }

        func finishSending() {}
        func close() {}
    }

    private final class Clock: Sendable {
        let nanoseconds = Atomic<UInt64>(1)
        func pass(milliseconds: UInt64) { nanoseconds.add(milliseconds * 1_000_000, ordering: .relaxed) }
    }

    private static let request = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)

    /// Connections of one address with requests, and one of another address.
    private func run(
        connections: Int, requests: Int, _ body: ([Socket], Socket, _ tick: () -> Void) -> Void
    ) throws {
        let clock = Clock()
        let served = ClosureHTTPHandler {
            clock.pass(milliseconds: 1)
            $0.respond(status: 200, headers: [], body: [1])
        }
        let server = try SimulatedServer(
            configuration: ServerConfiguration(host: "h"), http: served,
            grpc: ClosureGRPCHandler { $0.finish(.internalError("")) },
            nanoseconds: { clock.nanoseconds.load(ordering: .relaxed) })
        server.loop.simulate {
            let many = (0..<connections).map { _ in Socket() }
            let other = Socket()
            for socket in many { server.accept(socket, from: "192.0.2.1:1") }
            server.accept(other, from: "192.0.2.2:1")
            for socket in many { socket.input = Array(repeatElement(Self.request, count: requests).joined()) }
            body(many, other) {
                server.loop.simulateTick {
                    for socket in many + [other] where !socket.input.isEmpty && socket.channel?.awaitsInput == true {
                        socket.channel?.simulateEvents(hasInput: true, hasSpace: false, hasPeerEnded: false)
                    }
                }
            }
            for socket in many + [other] { socket.channel?.close() }
        }
    }

    @Test(arguments: [1, 50]) func oneClientsConnectionsWorkForSomeMillisecondsATick(requests: Int) throws {
        try run(connections: 200, requests: requests) { many, other, tick in
            tick()
            #expect((1...5).contains(many.count { $0.sentBytes > 0 }))
            // The other client's request is answered in the tick in which it arrives, beside those that wait.
            other.input = Self.request
            tick()
            #expect(other.sentBytes > 0)
            #expect((2...10).contains(many.count { $0.sentBytes > 0 }))
        }
    }

    @Test(arguments: [1, 3]) func whatWaitsIsServedInOrderAndNothingIsLost(requests: Int) throws {
        try run(connections: 42, requests: requests) { many, other, tick in
            other.input = Self.request
            tick()
            let answerBytes = other.sentBytes
            for _ in 0..<(9 * requests) {
                tick()
                let answers = many.map { $0.sentBytes / answerBytes }
                // A connection that is not delayed at first may have a second slice in its first tick.
                #expect((answers.max() ?? 0) - (answers.min() ?? 0) <= 2)
            }
            #expect(many.allSatisfy { $0.sentBytes == requests * answerBytes })
        }
    }

    @Test func aPeerThatEndsWhileItWaitsIsAnsweredFirst() throws {
        try run(connections: 7, requests: 1) { many, _, tick in
            tick()
            let late = many.filter { $0.sentBytes == 0 }
            #expect(late.count == 2)
            for socket in late {
                #expect(socket.channel?.awaitsInput == false)
                socket.channel?.simulateEvents(hasInput: false, hasSpace: false, hasPeerEnded: true)
            }
            tick()
            #expect(late.allSatisfy { $0.sentBytes > 0 })
        }
    }
}
