import HearthModel
import HearthNetwork
import HearthTestSupport
import Synchronization
import Testing

/// A handler may notice the end late: callbacks that it sets after the end must not retain anything.
@Suite struct LateCallbackTests {
    private final class Held: Sendable {}

    /// `@unchecked Sendable`: the runtime guards weak references, and each is set once.
    private final class Watched: @unchecked Sendable {
        weak var held: Held?
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func callbacksOfAnEndedExchangeAreReleased() async throws {
        let isOver = Box<Bool>()
        let watched = Watched()
        try await withServer(http: { exchange in
            exchange.start(status: 200, headers: [])
            exchange.onCancel = {
                let held = Held()
                watched.held = held
                let keeps = { withExtendedLifetime((held, exchange)) {} }
                exchange.onWritable = keeps
                exchange.onCancel = keeps
                exchange.onEnd = keeps
                exchange.onBody = { _ in keeps() }
                exchange.loop.execute { isOver.set(true) }
            }
        }) { server in
            do {
                let connection = try RawConnection(port: server.port)
                connection.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try await connection.readSome()
            }
            _ = try await isOver.value()
            #expect(watched.held == nil)
        }
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func callbacksOfAnEndedCallAreReleased() async throws {
        let isOver = Box<Bool>()
        let watched = Watched()
        try await withServer(grpc: { call in
            call.finish(.ok)
            let held = Held()
            watched.held = held
            let keeps = { withExtendedLifetime((held, call)) {} }
            call.onWritable = keeps
            call.onCancel = keeps
            call.onHalfClose = keeps
            call.onMessage = { _ in keeps() }
            call.loop.execute { isOver.set(true) }
        }) { server in
            let client = try await connect(server)
            _ = await call(client, "/a/b", messages: [])
            _ = try await isOver.value()
            #expect(watched.held == nil)
        }
    }
}
