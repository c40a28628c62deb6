import HearthNetwork

/// The response to one GET, which carries a session's messages. `@unchecked Sendable`: the exchange is used on its own
/// loop, everything else on the session's.
final class BackChannel: @unchecked Sendable {
    private let exchange: HTTPExchange
    private let home: EventLoop
    /// On the session's loop: whether the client takes more data at present.
    private(set) var hasCapacity = true
    var onWritable: (() -> Void)?
    /// The client has disconnected.
    var onBreak: (() -> Void)? { didSet { if isBroken { onBreak?() } } }
    private var isBroken = false

    /// To be called on the exchange's loop.
    init(_ exchange: HTTPExchange, home: EventLoop) {
        self.exchange = exchange
        self.home = home
        exchange.onCancel = { [self] in
            atHome { [self] in
                isBroken = true
                onBreak?()
                forget()
            }
        }
        exchange.onWritable = { [self] in
            atHome { [self] in
                hasCapacity = true
                onWritable?()
            }
        }
        exchange.start(status: 200, headers: WebChannelHTTP.headers(for: exchange.head))
    }

    func write(_ output: WebChannelSession.Output) {
        onExchange { [self] in
            if !exchange.write(output.bytes), !output.endsBackChannel { atHome { [self] in hasCapacity = false } }
            if output.endsBackChannel { exchange.end() }
        }
        if output.endsBackChannel { forget() }
    }

    private func forget() {
        onWritable = nil
        onBreak = nil
    }

    private func atHome(_ body: @escaping @Sendable () -> Void) {
        if home.isCurrent { body() } else { home.execute(body) }
    }

    private func onExchange(_ body: @escaping @Sendable () -> Void) {
        if exchange.loop.isCurrent { body() } else { exchange.loop.execute(body) }
    }
}
