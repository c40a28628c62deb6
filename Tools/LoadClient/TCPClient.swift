import HearthNetwork
import HearthConcurrency
import HearthModel

/// A client's connection without a protocol: it sends and receives bytes. For the load generator, which uses HTTP/1.1
/// and Redis' protocol over it.
///
/// All methods except `connect` are called on `loop`'s thread, and callbacks run on it.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
package final class TCPClient: @unchecked Sendable {
    package let loop: EventLoop
    /// Received bytes; they are valid during the call only.
    package var onBytes: ((UnsafeRawBufferPointer) -> Void)?
    /// The connection is closed, by either side.
    package var onClose: (() -> Void)?
    package private(set) var isClosed = false

    private var channel: SocketChannel?
    private var output: [UInt8] = []
    private var outputStart = 0

    private static let connectTimeoutMilliseconds = 10_000

    private init(loop: EventLoop) { self.loop = loop }

    /// Resolves the host on the calling thread, connects on the loop, and calls `done` there.
    package static func connect(
        host: String, port: Int, on loop: EventLoop, _ done: @escaping @Sendable (Result<TCPClient, Status>) -> Void
    ) {
        Connector.open(host: host, port: port, timeoutMilliseconds: connectTimeoutMilliseconds, on: loop) { result in
            switch result {
            case .failure(let status): done(.failure(status))
            case .success(let socket):
                let client = TCPClient(loop: loop)
                guard client.adopt(socket.descriptor, socket.address) else {
                    return done(.failure(.unavailable("cannot watch the socket")))
                }
                done(.success(client))
            }
        }
    }

    /// A connection in a simulation.
    package static func simulated(over socket: any SimulatedSocket, on loop: EventLoop) -> TCPClient {
        let client = TCPClient(loop: loop)
        let channel = SocketChannel(
            loop: loop, simulated: socket, remoteAddress: "", limits: NetworkLimits(), counters: LoopCounters())
        channel.driver = client
        client.channel = channel
        _ = channel.start()
        return client
    }

    private func adopt(_ descriptor: Int32, _ address: String) -> Bool {
        let channel = SocketChannel(
            loop: loop, descriptor: descriptor, remoteAddress: address, limits: NetworkLimits(),
            counters: LoopCounters())
        channel.driver = self
        self.channel = channel
        if channel.start() { return true }
        channel.close()
        return false
    }

    /// All bytes sent in one tick of the loop use one system call.
    package func send(_ bytes: [UInt8]) {
        guard let channel else { return }
        output += bytes
        channel.flushLater()
    }

    package func close() { channel?.close() }
}

extension TCPClient: ChannelDriver {
    package func received(_ bytes: UnsafeRawBufferPointer) { onBytes?(bytes) }

    package func receivedEnd() { close() }

    package func produceOutput(into scratch: OutputScratch) throws(BrokenInvariant) {
        let count = min(scratch.space, output.count - outputStart)
        guard count > 0 else { return }
        try output.withUnsafeBufferPointer { bytes throws(BrokenInvariant) in
            if let base = bytes.baseAddress { try scratch.append(base + outputStart, count) }
        }
        outputStart += count
        if outputStart == output.count {
            output.removeAll(keepingCapacity: true)
            outputStart = 0
        }
    }

    package func channelClosed() {
        guard !isClosed else { return }
        isClosed = true
        channel = nil
        let onClose = onClose
        self.onClose = nil
        onBytes = nil
        onClose?()
    }
}
