import HearthConcurrency
import HearthModel
import HearthNetwork

/// A poll that waits for output. `@unchecked Sendable`: the exchange is used on its own loop, the rest on the session's
/// loop.
final class LongPollRequest: @unchecked Sendable {
    private let exchange: HTTPExchange
    private let home: EventLoop
    /// Set when the client has disconnected. Used on the session's loop.
    var onBreak: (() -> Void)?

    /// Must be called on the exchange's loop.
    init(_ exchange: HTTPExchange, home: EventLoop) {
        self.exchange = exchange
        self.home = home
        exchange.onCancel = { [self] in
            home.execute { [self] in
                let onBreak = onBreak
                self.onBreak = nil
                onBreak?()
            }
        }
    }

    func answer(_ script: [UInt8]) {
        onBreak = nil
        let exchange = exchange
        if exchange.loop.isCurrent { return LongPollHTTP.answer(exchange, script) }
        exchange.loop.execute { LongPollHTTP.answer(exchange, script) }
    }

    /// - Parameter readers: the threads that read files.
    func answer(_ script: LargeScript, _ readers: WorkerGroup, for requester: Requester) {
        onBreak = nil
        let exchange = exchange
        exchange.loop.execute { LongPollHTTP.answer(exchange, script, readers, for: requester) }
    }
}
