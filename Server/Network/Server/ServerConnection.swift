/// A connection of unknown protocol: collects the first bytes, then passes them to the protocol's driver.
final class ServerConnection: ChannelDriver {
    private let channel: SocketChannel
    private let context: LoopContext
    private var held: [UInt8] = []
    private var isDone = false

    init(channel: SocketChannel, context: LoopContext) {
        self.channel = channel
        self.context = context
    }

    func secured(applicationProtocol: String?) {
        switch applicationProtocol {
        case "h2": becomeHTTP2(Array([]))
        case "http/1.1": becomeHTTP1(Array([]))
        // Without an ALPN protocol the first bytes determine the protocol.
        default: break
        }
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        guard !isDone else { return }
        held.append(contentsOf: bytes)
        switch held.withUnsafeBytes({ ProtocolDetector.detect($0) }) {
        case .needsMore: break
        case .http1: becomeHTTP1(held)
        case .http2: becomeHTTP2(held)
        case .tls:
            isDone = true
            context.counters.connectionsRefused.add(1)
            channel.sendAndClose(ProtocolDetector.tlsRefusal)
        }
    }

    private func becomeHTTP1(_ bytes: [UInt8]) { become(HTTP1Connection(channel: channel, context: context), bytes) }

    private func becomeHTTP2(_ bytes: [UInt8]) {
        guard context.tlsAdmission.usesHTTP2(channel),
            let session = HTTP2Session(channel: channel, context: context)
        else { return channel.close() }
        become(session, bytes)
    }

    private func become(_ driver: any ChannelDriver, _ bytes: [UInt8]) {
        isDone = true
        held = []
        channel.driver = driver
        if !bytes.isEmpty { bytes.withUnsafeBytes { driver.received($0) } }
        channel.flushLater()
        if context.isShuttingDown { driver.beginShutdown() }
    }

    func receivedEnd() { channel.close() }
    func produceOutput(into scratch: OutputScratch) {}
    func channelClosed() {}

    func checkTimeouts(now: UInt64) {
        // Browsers open connections in advance: the timeout applies only after the first byte.
        let milliseconds = held.isEmpty ? context.limits.idleHTTP1Milliseconds : context.limits.headMilliseconds
        if now > channel.createdAt + UInt64(milliseconds) * 1_000_000 { channel.timeOut() }
    }

    var idleSince: UInt64? { channel.createdAt }
    func closeIdle() { channel.close() }

    func beginShutdown() { channel.close() }
    func endShutdown() { channel.close() }
}
