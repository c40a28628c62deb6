import HearthModel
import HearthNetwork
import HearthTree
import HearthTreeStorage

/// A listen of a session.
final class SessionListen: ListenReceiver, @unchecked Sendable {
    // Belongs to the session's loop.
    private unowned let session: RealtimeSession
    let target: RealtimeTarget
    /// Chosen by the client; comes back with every push.
    let tag: Int64?
    private(set) var handle: RealtimeListen! = nil
    /// To be answered when the data has been sent for the first time.
    private var answer: RealtimeSession.Answer?
    /// The session's, when the listen was last judged.
    private var judgement = 0
    private var isReading = false {
        didSet { session.readsInFlight += (isReading ? 1 : 0) - (oldValue ? 1 : 0) }
    }

    init(_ session: RealtimeSession, _ target: RealtimeTarget, tag: Int64?, _ answer: RealtimeSession.Answer) {
        self.session = session
        self.target = target
        self.tag = tag
        self.answer = answer
        handle = session.namespace.hub.listen(to: target, on: session.loop, self)
    }

    private func reading(_ known: KnownData = .nothing) -> ListenReading {
        ListenReading(
            service: session.service, namespace: session.namespace, identity: session.identity, target: target,
            known: known)
    }

    func load(_ known: KnownData) {
        let reading = reading(known)
        judgement = session.judgement
        isReading = true
        handle.load { view throws(Status) in
            try reading.read(view)
        } _: { [self] result in
            isReading = false
            switch result {
            case .success(let content): loaded(content)
            case .failure(let status): end(status)
            }
            session.settle(self)
            session.proceed()
        }
    }

    func reload() {
        if !handle.isCancelled { load(.nothing) }
    }

    private func loaded(_ content: ListenReading.Content) {
        if let json = content.json { session.send(RealtimeMessages.whole(target.path, data: json, tag: tag)) }
        if let ranges = content.ranges {
            session.send(
                RealtimeMessages.pushHead("rm", target.path) + ranges + RealtimeMessages.pushTail(tag: tag))
        }
        if let answer {
            self.answer = nil
            session.confirmAtOnce(answer, data: Array((content.isIndexed ? "{}" : #"{"w":["no_index"]}"#).utf8))
        }
        // Rights have changed while it was read.
        if judgement != session.judgement { session.loop.execute { [self] in judge() } }
    }

    /// Asks whether it may go on. What is loading is asked of afterwards.
    func judge() {
        guard handle.isLive, judgement != session.judgement else { return }
        let reading = reading()
        judgement = session.judgement
        session.unsettle(self)
        handle.ask { view throws(Status) in
            try reading.judge(view)
        } _: { [self] result in
            if case .failure(let status) = result { end(status) }
            session.settle(self)
            if judgement != session.judgement { session.loop.execute { [self] in judge() } }
        }
    }

    /// It can't begin, or can't go on.
    private func end(_ status: Status) {
        handle.cancel()
        if session.listens[target] === self { session.listens[target] = nil }
        if let answer {
            self.answer = nil
            session.refuse(answer, status)
        } else {
            session.send(RealtimeMessages.revoked(target.path, query: target.query))
        }
    }

    /// The client doesn't want it any more.
    func cancel() {
        handle.cancel()
        isReading = false
        session.settle(self)
        if let answer {
            self.answer = nil
            session.confirm(answer, data: Array("{}".utf8))
        }
    }

    func listen(_ listen: RealtimeListen, changed push: RealtimePush) {
        if session.send(push, of: self) { return }
        listenIsStale(listen)
    }

    func listenIsStale(_ listen: RealtimeListen) {
        listen.dropChanges()
        session.becameStale(self)
    }

    func listen(_ listen: RealtimeListen, failed status: Status) {
        isReading = false
        end(status)
        session.settle(self)
    }
}

extension RealtimeSession {
    func listen(to target: RealtimeTarget, tag: Int64?, known: KnownData, _ answer: Answer) {
        // A second listen takes the place of the first, and has its own tag.
        listens.removeValue(forKey: target)?.cancel()
        if listens.count >= Limits.realtimeListensMax {
            let text = "A connection may have at most \(Limits.realtimeListensMax) listens."
            return refuse(answer, RealtimeRefusal(status: .tooBig, text: text))
        }
        let listen = SessionListen(self, target, tag: tag, answer)
        listens[target] = listen
        listen.load(known)
    }

    func unlisten(_ target: RealtimeTarget, _ answer: Answer) {
        listens.removeValue(forKey: target)?.cancel()
        confirm(answer)
    }

    func get(_ target: RealtimeTarget, _ answer: Answer) {
        let reading = ListenReading(
            service: service, namespace: namespace, identity: identity, target: target,
            required: target.query?.index)
        let answer = LoopBound(answer)
        readsInFlight += 1
        namespace.hub.read(on: loop, afterWritesOf: writesInFlight > 0 ? requester : nil) { view throws(Status) in
            try reading.read(view)
        } _: { [self] result, _ in
            readsInFlight -= 1
            switch result {
            case .success(let content): confirm(answer.value, data: content.json ?? Array("null".utf8))
            case .failure(let status): refuse(answer.value, status)
            }
        }
    }
}
