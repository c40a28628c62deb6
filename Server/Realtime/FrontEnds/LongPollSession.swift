import HearthHost
import HearthModel
import HearthNetwork

/// The carrier of a client without a WebSocket. Each of the client's requests brings messages, and one of them waits
/// for the server's output. A lost answer is not sent again, and ends the connection for the client.
///
/// `@unchecked Sendable`: belongs to the loop on which the session began. Its requests come from their own loops.
final class LongPollSession: RealtimeCarrier, @unchecked Sendable {
    let loop: EventLoop
    /// Identifies the session in the addresses of its requests, and proves that they come from its client.
    let id: String
    let password: String
    private let callback: String
    let peer: RealtimePeer
    private let events: Events
    private let service: RealtimeService
    private var requester: Requester
    /// Output that waits for the next poll.
    private let outbox: RealtimeOutbox
    private var isKnown = false
    private var hasSpoken = false
    private var session: RealtimeSession! = nil

    /// The state of a session that other threads need.
    struct Events: Sendable {
        /// Is called on the session's loop when requests cannot find the session any more.
        var isOver: @Sendable (LongPollSession) -> Void
        var hasRank: @Sendable (LongPollSession, SessionRank) -> Void
        var belongs: @Sendable (LongPollSession, Requester) -> Void
    }

    var queuedBytes: Int { outbox.memoryBytes }
    var hasLarge: Bool { outbox.hasLarge }
    /// Of the next answer.
    private var number = 0
    private var poll: LongPollRequest?
    private var isFlushScheduled = false
    /// The deadline of a poll, or of the session.
    private var timer: Timer?

    private var segments = LongPollSegments()
    private var inbox: [[UInt8]] = []
    private var inboxBytes = 0
    private var isReadingPaused = false
    private var isDelivering = false
    private var isEnded = false

    init(
        loop: EventLoop, peer: RealtimePeer, callback: String, id: String, password: String, _ service: RealtimeService,
        _ events: Events
    ) {
        self.loop = loop
        self.callback = callback
        self.id = id
        self.password = password
        self.peer = peer
        self.events = events
        self.service = service
        requester = RealtimeIdentity.nobody.requester(at: peer.address, connection: peer.connection)
        outbox = RealtimeOutbox(.messages, for: requester, service, on: loop)
        outbox.onReady = { [weak self] in self?.flushLater() }
        outbox.onLost = { [weak self] in self?.session.lostPushes() }
    }

    /// - Parameter formerSession: the session of the same client's last connection. Its disconnect writes are made
    ///   first.
    func begin(
        _ namespace: RealtimeNamespace, _ service: RealtimeService, host: String, formerSession: String?,
        _ request: LongPollRequest
    ) {
        let session = RealtimeSession(self, host: host, namespace, service)
        self.session = session
        if let former = formerSession.flatMap({ namespace.users.session($0) }) {
            session.hold()
            former.replace { session.loop.execute { session.release() } }
        }
        var script = LongPollScript(callback: callback)
        script.start(session: id, password: password)
        // The handshake: without it a client does not begin to poll.
        answer(request, after: script)
        schedule(seconds: Limits.longPollIdleSeconds)
    }

    // MARK: The session's side

    /// A client that does not fetch its output has used its share.
    func send(_ message: [UInt8]) {
        if isEnded { return }
        if !outbox.add(message) { return finish() }
        flushLater()
    }

    func send(_ message: LargeMessage) {
        if isEnded { return }
        outbox.add(message)
        flushLater()
    }

    func send(_ push: RealtimePush, tag: Int64?) -> Bool {
        if isEnded { return true }
        guard outbox.add(push, tag: tag) else { return false }
        flushLater()
        return true
    }

    func belongs(to requester: Requester) {
        self.requester = requester
        isKnown = requester != RealtimeIdentity.nobody.requester(at: peer.address, connection: peer.connection)
        events.belongs(self, requester)
        if !outbox.belongs(to: requester) { finish() }
    }

    func pauseReading() { isReadingPaused = true }

    func resumeReading() {
        guard isReadingPaused else { return }
        isReadingPaused = false
        loop.execute { [self] in deliver() }
    }

    /// Earlier output can still be fetched.
    func end(_ fault: RealtimeFault) { finish() }

    /// The connection has ended. The client is notified with the waiting answer, or at its next request.
    func finish() {
        if isEnded { return }
        isEnded = true
        inbox = []
        inboxBytes = 0
        // Not within a call of the session.
        loop.execute { [self] in session.carrierEnded() }
        schedule(seconds: Limits.longPollFarewellSeconds)
        flushLater()
    }

    // MARK: The client's side

    /// Receives a request's messages. Its answer waits for output, but only one answer waits at a time.
    func receive(_ segments: [LongPollSegment], _ request: LongPollRequest) {
        let former = poll
        poll = request
        if !segments.isEmpty { hasSpoken = true }
        events.hasRank(self, .attended)
        request.onBreak = { [weak self, weak request] in
            if let self, self.poll === request { self.pollIsOver() }
        }
        if let former {
            answer(former)
            if !isEnded { session.becameWritable() }
        }
        schedule(seconds: Limits.longPollWaitSeconds)
        if !isEnded {
            do throws(RealtimeFault) {
                let earlyBytesMax = isKnown ? Int.max : Limits.longPollUnknownEarlyBytesMax
                for segment in segments {
                    for message in try self.segments.take(segment, earlyBytesMax: earlyBytesMax) {
                        inboxBytes += message.count
                        inbox.append(message)
                    }
                }
                let inboxBytesMax =
                    isKnown ? Limits.realtimeWaitingBytesMax : Limits.longPollUnknownWaitingBytesMax
                let isTooMuch = inbox.count > 1 && inboxBytes > inboxBytesMax
                if isTooMuch || inbox.count > Limits.realtimeRequestsWaitingMax {
                    throw RealtimeFault(kind: .tooLarge, reason: "The client sends more than a session may receive.")
                }
                session.hold(pieceBytes: self.segments.heldBytes + inboxBytes)
                deliver()
            } catch { end(error) }
        }
        if isEnded || outbox.first != nil { flushLater() }
    }

    private func deliver() {
        if isDelivering { return }
        isDelivering = true
        defer { isDelivering = false }
        var taken = 0
        while !isReadingPaused, !isEnded, taken < inbox.count {
            let message = inbox[taken]
            taken += 1
            inboxBytes -= message.count
            session.receive(message)
        }
        inbox.removeFirst(min(taken, inbox.count))
        if taken > 0, !isEnded { session.hold(pieceBytes: segments.heldBytes + inboxBytes) }
    }

    /// Ends because there are too many.
    func makeSpace() { goodbye() }

    /// The page was closed, or now uses another transport.
    func goodbye() {
        finish()
        over()
    }

    // MARK: Output

    /// All output of a tick of the loop is sent as one answer.
    private func flushLater() {
        guard poll != nil, !isFlushScheduled else { return }
        isFlushScheduled = true
        loop.execute { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    private func flush() {
        guard let request = poll, outbox.first != nil || isEnded else { return }
        pollIsOver()
        answer(request)
        if isEnded { return outbox.isEmpty ? over() : () }
        session.becameWritable()
    }

    private func pollIsOver() {
        poll = nil
        events.hasRank(self, hasSpoken ? .unattended : .bare)
        schedule(seconds: isEnded ? Limits.longPollFarewellSeconds : Limits.longPollIdleSeconds)
    }

    private func answer(_ request: LongPollRequest) { answer(request, after: LongPollScript(callback: callback)) }

    private func answer(_ request: LongPollRequest, after script: LongPollScript) {
        var script = script
        if case .large(let message) = outbox.first {
            outbox.removeFirst()
            let parts = script.parts(number, message.body)
            var rest = LongPollScript(callback: callback)
            close(&rest)
            number += 1
            return request.answer(
                LargeScript(
                    message, before: parts.before, after: parts.after + rest.string, isQuoted: parts.isQuoted),
                service.pool.group(.short), for: requester)
        }
        script.answer(number, takeSmall())
        close(&script)
        number += 1
        request.answer(script.string)
    }

    private func takeSmall() -> [[UInt8]] {
        var messages: [[UInt8]] = []
        var bytes = 0
        while let next = outbox.first {
            let string: [UInt8]
            switch next {
            case .small(let message): string = message
            case .push(let push, let tag): string = push.message(tag: tag)
            case .large, .unwritten: return messages
            }
            if !messages.isEmpty, bytes + string.count > Limits.longPollAnswerBytesMax { break }
            outbox.removeFirst()
            bytes += string.count
            messages.append(string)
        }
        return messages
    }

    /// Marks the last answer as the last one.
    private func close(_ script: inout LongPollScript) {
        if isEnded, outbox.isEmpty { script.close(after: number) }
    }

    // MARK: Time

    private func schedule(seconds: Int) {
        timer?.cancel()
        timer = loop.schedule(afterMilliseconds: seconds * 1000) { [weak self] in self?.timeIsUp() }
    }

    private func timeIsUp() {
        guard let request = poll else {
            // The client has disconnected.
            finish()
            return over()
        }
        pollIsOver()
        answer(request)
    }

    private func over() {
        timer?.cancel()
        timer = nil
        outbox.close()
        if let poll { answer(poll) }
        poll = nil
        events.isOver(self)
    }
}
