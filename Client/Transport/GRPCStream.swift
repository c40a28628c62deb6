import HearthHTTPClient
import HearthModel
import Synchronization

/// An event of a stream. No event follows `closed`.
package enum GRPCStreamEvent: Sendable {
    /// The connection is open and the request's head has been sent: messages can be sent from now on.
    ///
    /// This does not wait for the response's head: servers may send it with their first message only, and that may
    /// depend on a request message.
    case opened
    case message([UInt8])
    /// The end of the stream for any reason, with the response's trailers.
    case closed(Status, trailers: [HTTPField])
}

/// A call with messages in both directions at once, on a connection of its own.
///
/// All methods may be called from any thread; none blocks. Events are delivered on the transport's thread, one after
/// another.
///
/// `@unchecked Sendable`: state that methods use is behind the mutex or atomic; the rest belongs to the loop's thread.
package final class GRPCStream: @unchecked Sendable {
    private let connections: GRPCConnections
    private let path: String
    private let fields: [HTTPField]
    private let outgoing = Mutex(Outgoing())
    private let isSilenced = Atomic<Bool>(false)
    private let isPaused = Atomic<Bool>(false)

    // Used on the loop's thread.
    private var onEvent: ((GRPCStreamEvent) -> Void)?
    private var reader: GRPCAnswerReader
    private var session: HTTP2StreamSession?
    private var isHeadSent = false
    private var isOpenedDelivered = false
    private var isSettled = false
    /// The failure of the connection; nil without one.
    private var failure: Status?
    private var transport: Transport?
    private var deadlineTimer: TransportTimer?

    init(
        connections: GRPCConnections, path: String, fields: [HTTPField], messageBytesMax: Int,
        onEvent: @escaping (GRPCStreamEvent) -> Void
    ) {
        self.connections = connections
        self.path = path
        self.fields = fields
        self.onEvent = onEvent
        reader = GRPCAnswerReader(messageBytesMax: messageBytesMax)
    }

    // MARK: From any thread

    /// Bytes that were passed to `send` and that the connection did not accept yet.
    package var queuedBytes: Int { outgoing.withLock { $0.bytes } }

    /// Queues a message. Does nothing after the end and after `finish`.
    package func send(_ message: [UInt8]) {
        let prefix: [UInt8]
        do throws(Status) { prefix = try GRPCFrame.prefix(message.count) } catch {
            connections.loop.execute { self.abort(error) }
            return
        }
        enqueue { outgoing in
            outgoing.chunks.append(prefix)
            if !message.isEmpty { outgoing.chunks.append(message) }
            outgoing.bytes += prefix.count + message.count
        }
    }

    /// Half-closes: no messages follow. The server then ends the stream.
    package func finish() { enqueue { $0.isFinished = true } }

    private func enqueue(_ change: (inout Outgoing) -> Void) {
        let wakes = outgoing.withLock { outgoing in
            guard !outgoing.isFinished, !outgoing.isOver else { return false }
            change(&outgoing)
            defer { outgoing.isWakeScheduled = true }
            return !outgoing.isWakeScheduled
        }
        guard wakes else { return }
        connections.loop.execute { self.wakeSending() }
    }

    /// Resets the stream immediately. No event follows, not even `closed`.
    package func cancel() {
        isSilenced.store(true, ordering: .sequentiallyConsistent)
        connections.loop.execute {
            self.onEvent = nil
            self.end()
        }
    }

    /// Pauses events. The server is paused, too, when the held bytes have reached `GRPCLimits.heldBytesMax` and
    /// the connection's buffers are full.
    package func pauseReceiving() { isPaused.store(true, ordering: .sequentiallyConsistent) }

    package func resumeReceiving() {
        guard isPaused.exchange(false, ordering: .sequentiallyConsistent) else { return }
        connections.loop.execute { self.deliver() }
    }

    // MARK: On the loop's thread

    /// - Parameter transport: retained until the end, because the stream's user need not retain it.
    func start(timeoutMilliseconds: Int?, keeping transport: Transport) {
        guard !isSilenced.load(ordering: .sequentiallyConsistent) else { return }
        self.transport = transport
        let loop = connections.loop
        loop.add(self)
        if let timeoutMilliseconds {
            deadlineTimer = loop.schedule(afterMilliseconds: timeoutMilliseconds) { [unowned self] in
                deadlineTimer = nil
                abort(Status(.deadlineExceeded, "the deadline of \(path) has passed"))
            }
        }
        do throws(Status) {
            let session = HTTP2StreamSession(
                loop: loop, address: connections.address, fields: fields, keepAlive: connections.keepAlive)
            self.session = session
            connect(session)
            try session.start()
        } catch { abort(error) }
    }

    private func connect(_ session: HTTP2StreamSession) {
        session.onOpen = { [unowned self] in
            isHeadSent = true
            deliver()
        }
        session.onLine = { [unowned self] in reader.readLine($0) }
        session.onData = { [unowned self] in reader.append($0) }
        session.fill = { [unowned self] buffer in outgoing.withLock { $0.fill(buffer) } }
        session.onProgress = { [unowned self, unowned session] in
            switch session.end {
            case nil: break
            case .complete: settle(nil)
            case .failed(let status): settle(status)
            }
            deliver()
        }
    }

    private func wakeSending() {
        outgoing.withLock { $0.isWakeScheduled = false }
        session?.resumeSending()
    }

    /// Delivers received data, as far as the consumer wants it.
    private func deliver() {
        if isHeadSent || reader.hasMessage, !isOpenedDelivered, !isSilenced.load(ordering: .sequentiallyConsistent) {
            isOpenedDelivered = true
            onEvent?(.opened)
        }
        do throws(Status) {
            while wantsEvents, let message = try reader.next() { onEvent?(.message(message)) }
            // The reader stores the error in `earlyFailure`.
        } catch {}
        if reader.earlyFailure != nil || reader.isComplete { settle(nil) }
        guard wantsEvents else {
            if reader.heldBytes >= GRPCLimits.heldBytesMax { session?.setReading(false) }
            return
        }
        if !isSettled {
            session?.setReading(true)
        } else if !reader.hasMessage {
            close(reader.finalStatus(failure: failure))
        }
    }

    private var wantsEvents: Bool {
        onEvent != nil && !isSilenced.load(ordering: .sequentiallyConsistent)
            && !isPaused.load(ordering: .sequentiallyConsistent)
    }

    /// No more input follows from the network. Earlier input may still wait for the consumer.
    private func settle(_ failure: Status?) {
        guard !isSettled else { return }
        isSettled = true
        self.failure = failure
        releaseConnection()
    }

    private func close(_ status: Status) {
        let onEvent = onEvent
        let trailers = reader.trailers
        end()
        if !isSilenced.load(ordering: .sequentiallyConsistent) { onEvent?(.closed(status, trailers: trailers)) }
    }

    private func end() {
        onEvent = nil
        isSettled = true
        releaseConnection()
        connections.loop.remove(self)
        transport = nil
    }

    private func releaseConnection() {
        let loop = connections.loop
        if let deadlineTimer { loop.cancelTimer(deadlineTimer) }
        deadlineTimer = nil
        session?.close()
        session = nil
        outgoing.withLock { $0 = Outgoing(isOver: true) }
    }
}

extension GRPCStream: LoopActivity {
    /// Also when the consumer has paused: input that it did not receive is lost.
    package func abort(_ status: Status) { if onEvent != nil { close(status) } }
}

extension GRPCStream {
    /// Messages to send.
    private struct Outgoing {
        var chunks: [[UInt8]] = []
        /// The chunk that is sent next, and the number of its bytes that are sent.
        var first = 0
        var offset = 0
        var bytes = 0
        var isFinished = false
        var isWakeScheduled = false
        var isOver = false

        mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Transfer.Output {
            var filled = 0
            while filled < buffer.count, first < chunks.count {
                let count = min(buffer.count - filled, chunks[first].count - offset)
                chunks[first].withUnsafeBytes { bytes in
                    UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<(filled + count)])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)]))
                }
                filled += count
                offset += count
                guard offset == chunks[first].count else { break }
                chunks[first] = []
                offset = 0
                first += 1
            }
            bytes -= filled
            if first > 64, first * 2 > chunks.count || first == chunks.count {
                chunks.removeSubrange(..<first)
                first = 0
            }
            if filled > 0 { return .bytes(filled) }
            return isFinished || isOver ? .end : .wait
        }
    }
}
