import CLinux
import CNghttp2
import Glibc
import HearthConcurrency
import HearthModel
import HearthTLS
import Synchronization

/// A server of HTTP/1.1, HTTP/2 and gRPC on one port. It handles bytes and messages, and does not interpret them.
///
/// The data flow is: socket → `SocketChannel` (TLS) → `ServerConnection` (protocol detection) → `HTTP1Connection` or
/// `HTTP2Session` → `HTTPExchange` or `GRPCCall` → the handler; and back through the same objects, gathered into one
/// write per connection and tick. All work of a connection, including its handlers, runs on one event loop.
///
/// Invariants: all memory that a peer can make the server hold is bounded by `NetworkLimits`; a handler's callbacks run
/// on its loop, and none after the exchange has ended.
///
/// `@unchecked Sendable`: state that changes after `start` is atomic, behind the mutex, or on the loops.
package final class NetworkServer: @unchecked Sendable {
    private let configuration: ServerConfiguration
    private let http: any HTTPHandler
    private let grpc: any GRPCHandler
    private let limit: ConnectionLimit
    private let state = Mutex(State())

    private struct State {
        var contexts: [LoopContext] = []
        var isStopped = false
        var port = 0
        var furtherPorts: [Int] = []
        /// Of new connections.
        var tls: TLSContext?
    }

    /// Used on the first loop's thread.
    private var listeners: [Listener] = []

    /// Whether nghttp2 ends connections with endless CONTINUATION frames (CVE-2024-28182).
    package static var canLimitContinuations: Bool { http2_can_limit_continuations() != 0 }

    package init(configuration: ServerConfiguration, http: any HTTPHandler, grpc: any GRPCHandler) {
        self.configuration = configuration
        limit = ConnectionLimit(connectionsMax: configuration.limits.connectionsMax)
        self.http = http
        self.grpc = grpc
    }

    /// The listening port; 0 before `start`.
    package var port: Int { state.withLock { $0.port } }

    /// The ports of the further addresses, in order.
    package var furtherPorts: [Int] { state.withLock { $0.furtherPorts } }

    package var loops: [EventLoop] { state.withLock { $0.contexts.map(\.loop) } }

    package var statistics: NetworkStatistics {
        var sum = NetworkStatistics()
        let (contexts, tls) = state.withLock { ($0.contexts, $0.tls) }
        for context in contexts { context.counters.add(to: &sum) }
        sum.brokenInvariants = configuration.brokenInvariants.count
        sum.certificateSecondsLeft = tls?.certificateSecondsLeft
        return sum
    }

    // MARK: Start

    /// Listens, and returns when clients can connect. Throws UNAVAILABLE or FAILED_PRECONDITION with a message that
    /// names the faulty address or file.
    package func start() throws {
        // A peer that closes while OpenSSL writes would otherwise end the process.
        signal(SIGPIPE, SIG_IGN)
        let tls = try configuration.tls.map { configuration throws(Status) in try TLSContext.server(configuration) }
        let sockets = try ListeningSockets.open(host: configuration.host, port: configuration.port)
        let further: [ListeningSockets]
        do {
            further = try ListeningSockets.open(configuration.furtherAddresses)
        } catch {
            sockets.close()
            throw error
        }
        let budget =
            configuration.receivedBytes
            ?? MemoryBudget(
                bytesMax: configuration.limits.bufferedInputBytesMax,
                shareBytesMax: configuration.limits.bufferedInputBytesMax)
        let count = configuration.loopCount > 0 ? configuration.loopCount : max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        var contexts: [LoopContext] = []
        for index in 0..<count {
            let loop = try EventLoop(index: index, brokenInvariants: configuration.brokenInvariants)
            contexts.append(
                LoopContext(
                    loop: loop, loopCount: count, configuration: configuration, tls: tls, inputBudget: budget,
                    http: http, grpc: grpc))
        }
        for context in contexts {
            // The context owns the table, and handlers may retain the server: the context must not own either of them.
            context.table.onRemove = { [weak self, unowned context] in
                context.counters.connectionsOpen.add(-1)
                self?.connectionClosed(context)
            }
            try context.loop.start()
            context.loop.execute { self.sweepLater(context) }
        }
        state.withLock { state in
            state.contexts = contexts
            state.tls = tls
            state.port = sockets.port
            state.furtherPorts = further.map(\.port)
        }
        let descriptors = sockets.descriptors + further.flatMap(\.descriptors)
        contexts[0].loop.execute { [contexts] in
            for descriptor in descriptors { self.listen(descriptor, contexts) }
        }
    }

    /// Creates one listening socket on the first loop, which passes connections to the loop with the fewest. The
    /// kernel's own distribution (SO_REUSEPORT) would assign two busy gRPC channels to one loop half of the time, and
    /// would silently let a second server share the port.
    private func listen(_ descriptor: Int32, _ contexts: [LoopContext]) {
        let listener = Listener(loop: contexts[0].loop, descriptor: descriptor) { [self] socket, address in
            accept(socket, address, contexts)
        }
        listeners.append(listener)
        _ = listener.start()
    }

    private func accept(_ descriptor: Int32, _ address: String, _ contexts: [LoopContext]) {
        contexts[0].counters.connectionsAccepted.add(1)
        if limit.enter() { return assign(descriptor, address, contexts) }
        switch limit.exceeded(by: (descriptor, address), now: contexts[0].loop.now) {
        case .refuse: refuse(descriptor, contexts)
        case .wait: break
        case .displace:
            for listener in listeners { listener.suspend() }
            limit.displaceIdle(contexts) { [weak self] in self?.idleWereDisplaced(contexts) }
        }
    }

    private func refuse(_ descriptor: Int32, _ contexts: [LoopContext]) {
        contexts[0].counters.connectionsRefused.add(1)
        close(descriptor)
    }

    /// Runs on the first loop.
    private func idleWereDisplaced(_ contexts: [LoopContext]) {
        for (descriptor, address) in limit.takeWaiting() {
            if limit.enter() {
                assign(descriptor, address, contexts)
            } else {
                limit.isFull(now: contexts[0].loop.now)
                refuse(descriptor, contexts)
            }
        }
        for listener in listeners { listener.resume() }
    }

    /// Passes a counted connection to the loop with the fewest, of those that have memory for it.
    private func assign(_ descriptor: Int32, _ address: String, _ contexts: [LoopContext]) {
        func load(_ context: LoopContext) -> (Int, Int) { (context.tlsAdmission.reluctance, context.connectionCount) }
        var chosen = contexts[0]
        for context in contexts where load(context) < load(chosen) { chosen = context }
        chosen.countConnection(1)
        let context = chosen
        if context.loop.isCurrent {
            adopt(descriptor, address, context)
        } else {
            context.loop.execute { self.adopt(descriptor, address, context) }
        }
    }

    /// Runs on the connection's own loop.
    private func adopt(_ descriptor: Int32, _ address: String, _ context: LoopContext) {
        guard !context.isShuttingDown else {
            close(descriptor)
            return connectionClosed(context)
        }
        SocketAddress.setConnectionOptions(descriptor)
        let channel = SocketChannel(
            loop: context.loop, descriptor: descriptor, remoteAddress: address, limits: configuration.limits,
            counters: context.counters, tls: context.tls.map { ($0, context.tlsAdmission) })
        channel.driver = ServerConnection(channel: channel, context: context)
        guard channel.start() else {
            channel.driver = nil
            close(descriptor)
            return connectionClosed(context)
        }
        context.counters.connectionsOpen.add(1)
        context.table.insert(channel)
    }

    private func connectionClosed(_ context: LoopContext) {
        limit.leave()
        context.countConnection(-1)
        context.countClosing()
    }

    private func sweepLater(_ context: LoopContext) {
        context.loop.schedule(afterMilliseconds: context.sweepMilliseconds) { [weak self] in
            context.checkTimeouts()
            ProcessMemory.giveBackIfQuiet(now: context.loop.now)
            self?.sweepLater(context)
        }
    }

    /// Reads certificate and key again, for later connections: a renewed certificate needs no restart. Throws, and
    /// keeps the old ones, when the files cannot be used. An encrypted key is one of those: nobody is at the terminal to
    /// enter its password.
    package func reloadCertificate() throws(Status) {
        guard let tls = configuration.tls else { return }
        let renewed = try TLSContext.server(tls, password: .given(""))
        let contexts = state.withLock { state in
            state.tls = renewed
            return state.contexts
        }
        for context in contexts { context.loop.execute { context.tls = renewed } }
    }

    // MARK: Stop

    /// Stops accepting connections and requests, waits for the open ones, ends those that exceed the grace period (gRPC
    /// calls with UNAVAILABLE), and joins the loops' threads. Must not run on a loop's thread. Repeated calls have no
    /// effect.
    package func shutdown(graceSeconds: Double) {
        let contexts = state.withLock { state -> [LoopContext] in
            if state.isStopped { return [] }
            state.isStopped = true
            return state.contexts
        }
        guard let first = contexts.first else { return }
        precondition(!contexts.contains { $0.loop.isCurrent }, "a loop cannot wait for its own end")
        let closed = Latch()
        first.loop.execute { [self] in
            for listener in listeners { first.loop.unregisterAndClose(listener) }
            listeners = []
            for connection in limit.takeWaiting() { close(connection.descriptor) }
            closed.open()
        }
        closed.wait()
        let drained = contexts.map { context in
            let latch = Latch()
            context.loop.execute { self.drain(context, latch) }
            return latch
        }
        let deadline = MonotonicTime.now.advanced(milliseconds: Int(max(0, min(graceSeconds, 1_000_000)) * 1000))
        for latch in drained { latch.wait(until: deadline) }
        for (context, latch) in zip(contexts, drained) {
            context.loop.execute {
                for channel in context.table.channels { channel.driver?.endShutdown() }
            }
            // The last output needs a moment to be sent.
            latch.wait(until: MonotonicTime.now.advanced(milliseconds: 200))
        }
        for context in contexts {
            let latch = Latch()
            context.loop.execute {
                for channel in context.table.channels { channel.close() }
                latch.open()
            }
            latch.wait()
            context.loop.stopAndJoin()
        }
    }

    private func drain(_ context: LoopContext, _ latch: Latch) {
        context.isShuttingDown = true
        for channel in context.table.channels { channel.driver?.beginShutdown() }
        if context.table.channels.isEmpty { latch.open() } else { context.table.onEmpty = { latch.open() } }
    }
}
