import HearthHTTPClient
import HearthModel
import Synchronization

/// A connection without a protocol, plain or TLS, through the same proxies as requests: for protocols that libcurl does
/// not support, such as WebSocket.
///
/// All methods may be called from any thread; none blocks. Events are delivered on the transport's thread, one after
/// another.
///
/// `@unchecked Sendable`: the socket belongs to the loop's thread, where closures pass it; the rest is atomic.
package final class RawConnection: @unchecked Sendable {
    package enum Event: Sendable {
        /// Connected, and the TLS handshake is complete.
        case opened
        case received([UInt8])
        /// The system has accepted all bytes that were passed to `send`.
        case drained
        /// The end: nil when the peer closed the connection. No event follows.
        case closed(Status?)
    }

    private let transport: Transport
    private let socket: RawSocket
    private let queued = Atomic<Int>(0)
    private let isSilenced = Atomic<Bool>(false)
    private var onEvent: ((Event) -> Void)?

    /// Begins to connect. With TLS, ALPN offers `http/1.1`.
    package init(transport: Transport, address: ServerAddress, onEvent: @escaping @Sendable (Event) -> Void) {
        self.transport = transport
        self.onEvent = onEvent
        socket = RawSocket(loop: transport.loop, address: address, applicationProtocol: .http1)
        transport.loop.execute { self.start() }
    }

    /// Bytes that were passed to `send` and that the system did not accept yet.
    package var queuedBytes: Int { queued.load(ordering: .relaxed) }

    /// Queues bytes, also before `opened`.
    package func send(_ bytes: [UInt8]) {
        queued.add(bytes.count, ordering: .relaxed)
        transport.loop.execute {
            bytes.withUnsafeBytes { self.socket.send($0) }
            self.count()
        }
    }

    /// Pauses reading. The peer is paused, too, when the buffers are full.
    package func setReceiving(_ isReceiving: Bool) {
        transport.loop.execute { self.socket.setReading(isReceiving) }
    }

    /// Closes the connection; queued bytes are sent as far as the system accepts them immediately. No event follows.
    package func close() {
        isSilenced.store(true, ordering: .sequentiallyConsistent)
        transport.loop.execute { self.end() }
    }

    // MARK: On the loop's thread

    private func start() {
        guard !isSilenced.load(ordering: .sequentiallyConsistent) else { return }
        transport.loop.add(self)
        socket.onOpen = { [unowned self] in deliver(.opened) }
        socket.onBytes = { [unowned self] in deliver(.received(Array($0))) }
        socket.onDrained = { [unowned self] in
            count()
            deliver(.drained)
        }
        socket.onEnd = { [unowned self] in finish($0) }
        do throws(Status) { try socket.start() } catch { finish(error) }
    }

    private func count() { queued.store(socket.queuedBytes, ordering: .relaxed) }

    private func deliver(_ event: Event) {
        if !isSilenced.load(ordering: .sequentiallyConsistent) { onEvent?(event) }
    }

    private func finish(_ status: Status?) {
        let onEvent = onEvent
        end()
        if !isSilenced.load(ordering: .sequentiallyConsistent) { onEvent?(.closed(status)) }
    }

    private func end() {
        onEvent = nil
        socket.close()
        transport.loop.remove(self)
    }
}

extension RawConnection: LoopActivity {
    package func abort(_ status: Status) { finish(status) }
}
