import HearthConcurrency
import HearthModel

/// A client's listen: it sends the data at a location or of a query, and then the changes after it, while the client
/// has the right to them.
///
/// `@unchecked Sendable`: belongs to the session's loop.
package final class SessionListen: ListenReceiver, @unchecked Sendable {
    /// Not weak: jobs of this listen may run after the end of its session. The two refer to each other until the session
    /// ends, which drops its listens.
    private let session: RealtimeSession
    let target: RealtimeTarget
    /// Chosen by the client; every push contains it.
    package let tag: Int64?
    package private(set) var handle: RealtimeSubscription! = nil
    /// The request that is answered when the data has been sent for the first time.
    private var answer: RealtimeSession.Answer?
    /// The session's `judgement` when the rights of the listen were last checked.
    private var judgement = 0
    /// Whether it holds the session's slot for large reads.
    private var isMakingLarge = false
    /// The client's present data, while the read waits for the slot.
    private var postponed: KnownData?
    /// The number of attempts that failed and may succeed later.
    private var retries = 0
    private static let retriesMax = 5
    private static let retryMilliseconds = 1000
    /// The subscription's token, with which it goes on after the check of its rights.
    private var pause = 0
    private var isReading = false {
        didSet { session.readsInFlight += (isReading ? 1 : 0) - (oldValue ? 1 : 0) }
    }

    init(_ session: RealtimeSession, _ target: RealtimeTarget, tag: Int64?, _ answer: RealtimeSession.Answer) {
        self.session = session
        self.target = target
        self.tag = tag
        self.answer = answer
        handle = session.namespace.hub.listen(to: target, on: session.loop, for: session.requester, self)
    }

    private func reading(_ known: KnownData = .nothing) -> ListenReading {
        ListenReading(
            service: session.service, namespace: session.namespace, identity: session.identity, target: target,
            known: known, cancellation: session.cancellation)
    }

    func load(_ known: KnownData) {
        isReading = true
        read(known, mayBeLarge: false)
    }

    /// - Parameter mayBeLarge: the session makes one large answer at a time.
    private func read(_ known: KnownData, mayBeLarge: Bool) {
        let reading = reading(known)
        let requester = session.requester
        judgement = session.judgement
        isMakingLarge = mayBeLarge
        let kind: WorkerPool.Kind = mayBeLarge ? .long : .brief
        handle.load(kind, for: requester) { view throws(Status) in
            try reading.read(view, for: requester, mayBeLarge: mayBeLarge)
        } _: { [self] result in
            if case .failure(ListenReading.isLarge) = result { return postpone(known) }
            // Rights have changed during the read: the listen delivers neither the data nor the changes that followed
            // it.
            if case .success = result, judgement != session.judgement {
                return read(known, mayBeLarge: mayBeLarge)
            }
            var isSettled = true
            switch result {
            case .success(let content):
                retries = 0
                loaded(content)
            case .failure(let status) where status.isPassing && retries < Self.retriesMax:
                isSettled = false
                retry(known)
            case .failure(let status): end(status)
            }
            // Not earlier: the request that waits for the read is begun, and may replace this listen.
            isReading = false
            if mayBeLarge { endLarge() }
            if isSettled { session.settle(self) }
            session.proceed()
            if case .success = result { judgeAgain() }
        }
    }

    /// Reads again when the client has received the large data.
    private func postpone(_ known: KnownData) {
        handle.dropChanges()
        postponed = known
        session.whenLargeMayBeMade { [self] in
            guard let known = postponed, !handle.isCancelled else {
                isReading = false
                session.largeIsMade()
                return session.proceed()
            }
            postponed = nil
            read(known, mayBeLarge: true)
        }
    }

    /// Reads again after a delay: the failure depends neither on the client's rights nor on the data.
    private func retry(_ known: KnownData) {
        retries += 1
        handle.dropChanges()
        session.loop.schedule(afterMilliseconds: Self.retryMilliseconds) { [self] in
            if !handle.isCancelled, !handle.isLive, !isReading { load(known) }
        }
    }

    private func endLarge() {
        guard isMakingLarge else { return }
        isMakingLarge = false
        session.largeIsMade()
    }

    func reload() {
        if !handle.isCancelled { load(.nothing) }
    }

    private func loaded(_ content: ListenReading.Content) {
        if let json = content.json {
            session.send(
                RealtimeServerMessage.pushHead("d", target.path), json, RealtimeServerMessage.pushTail(tag: tag))
        }
        if let ranges = content.ranges {
            session.send(
                RealtimeServerMessage.pushHead("rm", target.path), ranges, RealtimeServerMessage.pushTail(tag: tag))
        }
        if let answer {
            self.answer = nil
            session.confirmAtOnce(answer, data: Array((content.isIndexed ? "{}" : #"{"w":["no_index"]}"#).utf8))
        }
    }

    // MARK: Rights

    /// Waits, with others, for the check of its right to continue. A running read is repeated instead.
    func judge() {
        guard judgement != session.judgement, let token = handle.pause() else { return }
        pause = token
        session.unsettle(self)
        session.judge(self)
    }

    /// Rights may have changed by requests that were begun when it was loaded, before it continued.
    private func judgeAgain() {
        guard judgement != session.judgement, let token = handle.stay() else { return }
        pause = token
        session.unsettle(self)
        session.judge(self)
    }

    /// The listen's part of the check; nil when it is not needed any more.
    var question: ListenReading? { handle.isCancelled ? nil : reading() }

    /// - Parameter judgement: the session's `judgement` at the time of the check.
    func isJudged(_ verdict: Result<Void, Status>, at judgement: Int) {
        if handle.isCancelled { return }
        self.judgement = judgement
        if case .failure(let status) = verdict {
            end(status)
        } else if judgement != session.judgement {
            return session.judge(self)
        } else {
            handle.goOn(pause)
        }
        session.settle(self)
    }

    /// The listen cannot begin or continue.
    private func end(_ status: Status) {
        handle.cancel()
        if session.listens[target] === self { session.listens[target] = nil }
        // The listen ends alone, whatever the reason is: the connection carries others.
        if let answer {
            self.answer = nil
            session.refuse(answer, status)
        } else {
            session.send(RealtimeServerMessage.revoked(target.path, query: target.query))
        }
    }

    /// The client has removed the listen.
    func cancel() {
        handle.cancel()
        endReading()
        session.settle(self)
        if let answer {
            self.answer = nil
            session.confirm(answer, data: Array("{}".utf8))
        }
    }

    /// The result of the read is not wanted. The read counts towards the session's limit until it ends.
    private func endReading() {
        if postponed != nil {
            // It ends when it gets the slot. Until then nothing of the client's data needs to be kept.
            postponed = KnownData.nothing
            return
        }
        let session = session
        handle.whenIdle { [self] in
            isReading = false
            endLarge()
            session.proceed()
        }
    }

    func listen(_ listen: RealtimeSubscription, changed push: RealtimePush) {
        if session.send(push, of: self) { return }
        listenIsStale(listen)
    }

    func listenIsStale(_ listen: RealtimeSubscription) {
        listen.dropChanges()
        session.becameStale(self)
    }

    func listen(_ listen: RealtimeSubscription, failed status: Status) {
        if answer == nil, status.isPassing, retries < Self.retriesMax {
            listenAgain()
        } else {
            end(status)
            session.settle(self)
        }
        endReading()
    }

    /// Begins anew after a delay: changes are delivered no more, because of a failure that may pass.
    private func listenAgain() {
        retries += 1
        handle.cancel()
        scheduleListen()
    }

    private func scheduleListen() {
        session.loop.schedule(afterMilliseconds: Self.retryMilliseconds) { [self] in
            guard session.listens[target] === self else { return }
            // The former read waits for the slot for large ones, or for a worker.
            if isReading { return scheduleListen() }
            handle = session.namespace.hub.listen(to: target, on: session.loop, for: session.requester, self)
            load(.nothing)
        }
    }
}
