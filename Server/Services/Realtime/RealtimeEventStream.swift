import HearthModel
import HearthNetwork
import HearthTree
import HearthTreeStorage

/// A place or a query that is followed over HTTP: an answer without end of server-sent events.
///
/// First the whole as a `put` at `/`; then what changes, in the order of commits. A client that doesn't read gets nothing
/// more until it does, and then the whole again. `@unchecked Sendable`: belongs to the loop of its exchange. Source:
/// "Streaming from the REST API" in the documentation.
final class RealtimeEventStream: ListenReceiver, @unchecked Sendable {
    private let id = "stream " + String(UInt64.random(in: .min ... .max))
    private let call: RealtimeCall
    private let service: RealtimeService
    private let namespace: RealtimeNamespace
    private let reading: ListenReading
    private var handle: RealtimeListen! = nil
    private var hasStarted = false
    private var isEnded = false
    private var hasRoom = true
    /// What was lost has to be sent whole when there is room.
    private var isStale = false
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
        self.namespace = namespace
        let query = target.query.flatMap { $0.isUnfiltered ? nil : $0 }
        reading = ListenReading(
            service: service, namespace: namespace, identity: identity,
            target: RealtimeTarget(path: target.path, query: query), form: call.parameters.isExport ? .export : .plain,
            required: target.query?.index)
    }

    /// Answers the request; what can't be streamed is refused.
    func begin(_ identity: RealtimeIdentity) {
        let head = call.head
        let requester = identity.requester(at: head.remoteAddress, connection: head.connectionNumber)
        guard service.connections.admit(self, id: id, for: requester, rank: .attended) else {
            isEnded = true
            return call.fail(RealtimeConnections.tooMany)
        }
        namespace.users.add(self)
        service.streams.add(self) { [weak self] status in self?.loop.execute { [weak self] in self?.shutDown(status) } }
        handle = namespace.hub.listen(to: reading.target, on: call.loop, self)
        // The call holds the stream, and gives it free at its end.
        call.onCancel = { self.close() }
        call.exchange.onWritable = { self.becameWritable() }
        expiry = TokenExpiry(identity.tokenEnd, on: loop) { [weak self] _ in self?.end(with: Self.revokedEvent) }
        load()
    }

    var loop: EventLoop { call.loop }
    private var depth: Int { reading.target.path.count }

    private func load() {
        isStale = false
        let reading = reading
        handle.load { view throws(Status) in
            try reading.read(view)
        } _: { [self] result in
            switch result {
            case .success(let content): loaded(content.json ?? [])
            case .failure(let status):
                if hasStarted { return end(with: Self.cancelEvent) }
                refuse(status)
            }
        }
    }

    private func loaded(_ json: [UInt8]) {
        if !hasStarted {
            hasStarted = true
            call.startEvents()
            beat()
        }
        write(RealtimePush.eventHead("put", .root, below: 0) + json + RealtimePush.eventTail)
        if mustJudge { loop.execute { [self] in rulesChanged() } }
    }

    private func write(_ event: [UInt8]) {
        if isEnded || event.isEmpty { return }
        hasRoom = call.exchange.write(event)
    }

    private func becameWritable() {
        hasRoom = true
        if isStale, !isEnded { load() }
    }

    /// Proxies and clients tell by it that the connection lives.
    private func beat() {
        keepAlive = loop.schedule(afterMilliseconds: Limits.realtimeKeepAliveSeconds * 1000) { [weak self] in
            guard let self, !self.isEnded else { return }
            if self.hasRoom { self.write(Self.keepAliveEvent) }
            self.beat()
        }
    }

    private func end(with event: [UInt8]) {
        if isEnded { return }
        if hasStarted {
            write(event)
            close()
            call.endEvents(RealtimeAccess.denied)
        } else {
            refuse(RealtimeAuthenticator.expired)
        }
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
        keepAlive?.cancel()
        expiry?.cancel()
        namespace.users.remove(self)
        service.connections.remove(id)
        service.streams.remove(self)
    }

    /// Ends it without an event: clients come back, to another server or later.
    private func shutDown(_ status: Status) {
        if isEnded { return }
        close()
        if hasStarted { call.endEvents(status) } else { call.fail(status) }
    }

    // MARK: Changes

    func listen(_ listen: RealtimeListen, changed push: RealtimePush) {
        if hasRoom { write(push.event(below: depth)) } else { listenIsStale(listen) }
    }

    func listenIsStale(_ listen: RealtimeListen) {
        listen.dropChanges()
        isStale = true
        if hasRoom { load() }
    }

    func listen(_ listen: RealtimeListen, failed status: Status) {
        if hasStarted { return end(with: Self.cancelEvent) }
        refuse(status)
    }
}

extension RealtimeEventStream: RealtimeUser {
    func makeRoom() { shutDown(RealtimeConnections.tooMany) }

    func rulesChanged() {
        if isEnded { return }
        mustJudge = !handle.isLive
        // What is loading is judged with the rules that are in force then, or once more afterwards.
        if mustJudge { return }
        let reading = reading
        handle.ask { view throws(Status) in
            try reading.judge(view)
        } _: { [self] result in
            if case .failure = result { end(with: Self.cancelEvent) }
            if mustJudge { loop.execute { [self] in rulesChanged() } }
        }
    }
}
