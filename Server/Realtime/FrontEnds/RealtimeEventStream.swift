import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthTree
import HearthTreeStorage

/// A location or a query that is followed over HTTP: an endless answer of server-sent events.
///
/// The first event is a `put` at `/` with all data; then the changes follow in the order of commits. A client that
/// doesn't read receives no events until it does, and then all data again. `@unchecked Sendable`: belongs to the loop
/// of its exchange. Source: "Streaming from the REST API" in the documentation.
final class RealtimeEventStream: ListenReceiver, @unchecked Sendable {
    private let id = "stream " + String(UInt64.random(in: .min ... .max))
    private let call: RealtimeCall
    private let service: RealtimeService
    private let namespace: RealtimeNamespace
    private let reading: ListenReading
    private var handle: RealtimeSubscription! = nil
    private var hasStarted = false
    private var isEnded = false
    private let requester: Requester
    private var sender: RealtimeSender! = nil
    /// Events were lost: all data must be sent when there is capacity.
    private var isStale = false
    /// The rules have changed since the present read or check was begun.
    private var mustJudge = false
    private var keepAlive: Timer?
    private var expiry: TokenExpiry?

    private static let keepAliveEvent = Array("event: keep-alive\ndata: null\n\n".utf8)
    private static let cancelEvent = Array("event: cancel\ndata: null\n\n".utf8)
    private static let revokedEvent = Array("event: auth_revoked\ndata: \"credential is no longer valid\"\n\n".utf8)

    init(
        _ call: RealtimeCall, _ target: RealtimeTarget, _ identity: RealtimeIdentity, _ namespace: RealtimeNamespace,
        _ service: RealtimeService
    ) {
        self.call = call
        self.service = service
        requester = identity.requester(at: call.head.remoteAddress, connection: call.head.connectionNumber)
        self.namespace = namespace
        let query = target.query.flatMap { $0.isUnfiltered ? nil : $0 }
        reading = ListenReading(
            service: service, namespace: namespace, identity: identity,
            target: RealtimeTarget(path: target.path, query: query), form: call.parameters.isExport ? .export : .plain,
            required: target.query?.index, cancellation: call.cancellation)
        sender = RealtimeSender(self, .events(depth: target.path.count), for: requester, service)
        sender.outbox.onLost = { [weak self] in
            guard let self else { return }
            listenIsStale(handle)
        }
    }

    /// Answers the request; fails with an error when the request cannot be streamed.
    func begin(_ identity: RealtimeIdentity) {
        guard service.connections.admit(self, id: id, for: requester, rank: .attended) else {
            isEnded = true
            return call.fail(RealtimeConnections.tooMany)
        }
        namespace.users.add(self)
        service.streams.add(self) { [weak self] status in self?.loop.execute { [weak self] in self?.shutDown(status) } }
        handle = namespace.hub.listen(to: reading.target, on: call.loop, for: requester, self)
        // The call refers to the stream until the call ends.
        call.onCancel = { self.close() }
        call.exchange.onWritable = {
            self.sender.becameWritable()
            self.hasSentSome()
        }
        expiry = TokenExpiry(identity.tokenEnd, on: loop) { [weak self] _ in self?.end(with: Self.revokedEvent) }
        load()
    }

    var loop: EventLoop { call.loop }

    /// - Parameter mayBeLarge: the first read is for small data.
    private func load(mayBeLarge: Bool = false) {
        isStale = false
        mustJudge = false
        let reading = reading
        let requester = requester
        let kind: WorkerPool.Kind = mayBeLarge ? .long : .brief
        handle.load(kind, for: requester) { view throws(Status) in
            try reading.read(view, for: requester, mayBeLarge: mayBeLarge)
        } _: { [self] result in
            switch result {
            case .success where mustJudge: load(mayBeLarge: mayBeLarge)
            case .success(let content): loaded(content.json ?? .null)
            case .failure(ListenReading.isLarge):
                handle.dropChanges()
                load(mayBeLarge: true)
            case .failure(let status):
                fail(status)
            }
        }
    }

    private func loaded(_ data: RealtimeData) {
        if !hasStarted {
            hasStarted = true
            call.startEvents()
            beat()
        }
        let head = RealtimePush.eventHead("put", .root, below: 0)
        switch data {
        case .memory(let json): sender.send(head + json + RealtimePush.eventTail)
        case .file(let body): sender.send(LargeMessage(head: head, body: body, tail: RealtimePush.eventTail))
        }
    }

    /// Shows proxies and clients that the connection is open.
    private func beat() {
        keepAlive = loop.schedule(afterMilliseconds: Limits.realtimeKeepAliveSeconds * 1000) { [weak self] in
            guard let self, !self.isEnded else { return }
            if self.sender.isIdle { self.sender.send(Self.keepAliveEvent) }
            self.beat()
        }
    }

    private func end(with event: [UInt8]) {
        if isEnded { return }
        if hasStarted {
            // No other event may be sent within a large event.
            let isWhole = sender.finish()
            if isWhole { call.exchange.write(event) }
            close()
            call.endEvents(RealtimeAccess.denied, isWhole: isWhole)
        } else {
            refuse(RealtimeAuthenticator.expired)
        }
    }

    /// The stream cannot continue. A client takes the event as the end of its rights; after a plain disconnect it
    /// reconnects.
    private func fail(_ status: Status) {
        if !hasStarted { return refuse(status) }
        if status.code == .permissionDenied { end(with: Self.cancelEvent) } else { shutDown(status) }
    }

    private func refuse(_ status: Status) {
        close()
        call.fail(status)
    }

    private func close() {
        if isEnded { return }
        isEnded = true
        call.onCancel = nil
        handle.cancel()
        sender.close()
        keepAlive?.cancel()
        expiry?.cancel()
        namespace.users.remove(self)
        service.connections.remove(id)
        service.streams.remove(self)
    }

    /// Ends it without an event: clients reconnect, to another server or later.
    private func shutDown(_ status: Status) {
        if isEnded { return }
        let isWhole = sender.finish()
        close()
        if hasStarted { call.endEvents(status, isWhole: isWhole) } else { call.fail(status) }
    }

    // MARK: Changes

    func listen(_ listen: RealtimeSubscription, changed push: RealtimePush) {
        if !sender.send(push, tag: nil) { listenIsStale(listen) }
    }

    func listenIsStale(_ listen: RealtimeSubscription) {
        listen.dropChanges()
        isStale = true
        if sender.isIdle { load() }
    }

    func listen(_ listen: RealtimeSubscription, failed status: Status) { fail(status) }
}

extension RealtimeEventStream: RealtimeOutput {
    func write(_ event: [UInt8]) -> Bool { event.isEmpty || call.exchange.write(event) }

    func write(_ push: RealtimePush, tag: Int64?) -> Bool { write(push.event(below: reading.target.path.count)) }

    func begin(_ message: LargeMessage) -> Bool { call.exchange.write(message.head) }
    func write(piece: [UInt8]) -> Bool { call.exchange.write(piece) }
    func end(_ message: LargeMessage) -> Bool { call.exchange.write(message.tail) }

    func sendingFailed() { loop.execute { [self] in shutDown(RealtimeConnections.tooMany) } }

    func hasSentSome() {
        if isStale, !isEnded, sender.isIdle { load() }
    }
}

extension RealtimeEventStream: RealtimeUser {
    func makeSpace() { shutDown(RealtimeConnections.tooMany) }

    /// The present read is checked by these rules, or repeated.
    func rulesChanged() {
        if isEnded { return }
        if handle.isLive { judge() } else { mustJudge = true }
    }

    private func judge() {
        mustJudge = false
        let reading = reading
        handle.ask(for: requester) { view throws(Status) in
            try reading.judge(view)
        } _: { [self] result in
            switch result {
            case .failure(let status): fail(status)
            case .success where mustJudge: judge()
            case .success: break
            }
        }
    }
}
