import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthWire

/// A stream over WebChannel: many HTTP requests, one session. `@unchecked Sendable`: belongs to the loop on which the
/// session began; its requests are forwarded from their loops.
final class WebChannelCall: StreamCall, @unchecked Sendable {
    let loop: EventLoop
    let cancellation = Cancellation()
    let format = MessageFormat.json(JSONOptions())
    /// The identity of the handshake: a client's credentials apply to the whole session.
    let identity: Identity
    let requester: Requester
    /// Of the handshake, too.
    let onceValues: [String]
    let triggersValues: [String]

    var onMessage: (([UInt8]) -> Void)?
    var onHalfClose: (() -> Void)?
    var onFault: ((Status) -> Void)?
    var onCancel: (() -> Void)?
    var onWritable: (() -> Void)?

    private var session: WebChannelSession
    private var observation: RequestObserver.Observation?
    private let forget: () -> Void
    private let rank: (SessionRank) -> Void
    /// Memory of the client's messages that wait for earlier ones or for the stream.
    private let held: MemoryReservation
    /// Memory of unacknowledged output.
    private let unacknowledged: MemoryReservation
    private let memory: ServerMemory
    private(set) var isFinished = false
    private var hasCapacity = true
    private var isFlushScheduled = false

    private var backChannel: BackChannel?
    private var attachedAt: UInt64 = 0
    private var writtenAt: UInt64 = 0
    /// Fires at the next deadline: of a keep-alive, of a poll, of the session.
    private var timer: Timer?
    private var pollEnds: UInt64?

    /// Notifies the ended stream.
    private var endedStream: (() -> Void)?

    private var inbox: [[UInt8]] = []
    private var inboxBytes = 0
    private var isPaused = false
    private var isDelivering = false
    private var waitingPosts: [@Sendable ([UInt8]) -> Void] = []

    /// - Parameters:
    ///   - headers: those of the handshake, by whichever way they came.
    ///   - memory: for messages that wait, and for unacknowledged output.
    ///   - rank: called with the activity of the session.
    ///   - forget: called when the session has ended.
    init(
        id: String, _ identity: Identity, _ requester: Requester, headers: [HTTPHeader], loop: EventLoop,
        observation: RequestObserver.Observation, memory: ServerMemory, rank: @escaping (SessionRank) -> Void,
        forget: @escaping () -> Void
    ) {
        self.loop = loop
        self.identity = identity
        self.requester = requester
        onceValues = headers.filter { $0.name == OnceHeader.name }.map(\.value)
        triggersValues = headers.filter { $0.name == TriggersHeader.name }.map(\.value)
        self.observation = observation
        self.forget = forget
        self.rank = rank
        self.memory = memory
        held = memory.received.reservation(for: requester)
        unacknowledged = memory.unacknowledged.reservation(for: requester)
        // An unauthenticated client gets little memory.
        var earlyBytesMax = Limits.webChannelEarlyBytesMax
        if case .client(nil) = identity { earlyBytesMax = Limits.webChannelAnonymousEarlyBytesMax }
        session = WebChannelSession(id: id, earlyBytesMax: earlyBytesMax)
        scheduleTimer()
    }

    // MARK: The stream's side

    func send(_ message: [UInt8]) -> Bool {
        if isFinished { return false }
        session.append([UInt8(ascii: "[")] + message + [UInt8(ascii: "]")])
        guard countQueued() else {
            endForWantOfMemory()
            return false
        }
        hasCapacity = session.hasCapacity
        flushLater()
        return hasCapacity
    }

    func finish(_ status: Status) {
        if isFinished { return }
        isFinished = true
        observed(status)
        forgetStream()
        if status.code != .ok { session.append([UInt8(ascii: "[")] + ErrorBody.json(status) + [UInt8(ascii: "]")]) }
        session.close()
        flush()
        scheduleTimer()
    }

    /// False when the unacknowledged output exceeds the client's share.
    private func countQueued() -> Bool {
        let bytes = max(0, session.queuedBytes - Limits.webChannelOutputUncountedBytes)
        let isCounted = bytes == unacknowledged.bytes || unacknowledged.resize(to: bytes)
        if bytes > 0 { session.isScarce = memory.unacknowledged.isScarce }
        return isCounted
    }

    /// Ends the stream of a client that does not acknowledge. The client gets the status after the sent messages; the
    /// rest is dropped.
    private func endForWantOfMemory() {
        session.dropUnwritten()
        _ = countQueued()
        cancellation.cancel()
        endedStream = onCancel
        finish(.resourceExhausted("The server holds too much that this client does not acknowledge."))
        // The stream is sending at this moment.
        loop.execute { [self] in
            let ended = endedStream
            endedStream = nil
            ended?()
        }
    }

    func pauseReading() { isPaused = true }

    func resumeReading() {
        guard isPaused else { return }
        isPaused = false
        loop.execute { [self] in deliver() }
    }

    private func observed(_ status: Status) {
        observation?.end(status, on: loop)
        observation = nil
    }

    /// The stream's closures hold the call, and it holds them: the end breaks this cycle.
    private func forgetStream() {
        onMessage = nil
        onHalfClose = nil
        onFault = nil
        onCancel = nil
        onWritable = nil
        inbox = []
        inboxBytes = 0
        _ = countHeld()
        answerPosts()
    }

    // MARK: The client's side

    var handshake: [UInt8] { session.handshake }

    /// Takes messages. `answer` is called with the response body when they are accepted, or when the session has ended.
    /// - Throws: a status that ends the session.
    func receive(
        _ body: ForwardBody, acknowledging id: Int64?, answer: @escaping @Sendable ([UInt8]) -> Void
    ) throws(Status) {
        acknowledge(id)
        do throws(Status) {
            let messages = try session.receive(body)
            if !isFinished {
                inbox.append(contentsOf: messages)
                inboxBytes += messages.reduce(0) { $0 + $1.count }
            }
            if waitingPosts.count >= Limits.webChannelWaitingPostsMax || inboxBytes > Limits.webChannelEarlyBytesMax {
                throw .resourceExhausted("The client sends faster than its stream takes.")
            }
            guard countHeld() else {
                throw .resourceExhausted("The server holds too many messages that wait for earlier ones.")
            }
        } catch {
            abandon()
            throw error
        }
        if !body.messages.isEmpty, backChannel == nil { rank(.unattended) }
        waitingPosts.append(answer)
        deliver()
        if let missing = session.missingNumber { watchGap(missing) }
        if backChannel == nil { scheduleTimer() }
    }

    /// False when the waiting messages need more memory than the server has.
    private func countHeld() -> Bool { held.resize(to: session.earlyBytes + inboxBytes) }

    /// Ends a session whose missing message does not arrive: the client does not repeat a message that it considers
    /// sent.
    private func watchGap(_ missing: Int64) {
        loop.schedule(afterMilliseconds: Limits.webChannelIdleSeconds * 1000) { [weak self] in
            if let self, !self.isFinished, self.session.missingNumber == missing { self.abandon() }
        }
    }

    private func deliver() {
        if isDelivering { return }
        isDelivering = true
        var taken = 0
        while !isPaused, taken < inbox.count, let onMessage {
            let message = inbox[taken]
            taken += 1
            inboxBytes -= message.count
            onMessage(message)
        }
        isDelivering = false
        inbox.removeFirst(min(taken, inbox.count))
        if taken > 0 { _ = countHeld() }
        if inbox.isEmpty { answerPosts() }
    }

    private func answerPosts() {
        let posts = waitingPosts
        waitingPosts = []
        if posts.isEmpty { return }
        flush()
        for answer in posts { answer(session.answer) }
    }

    private func acknowledge(_ id: Int64?) {
        if let id {
            session.acknowledge(id)
            _ = countQueued()
        }
        if isFinished, session.isAcknowledged { return end() }
        notifyCapacity()
    }

    private func notifyCapacity() {
        guard !hasCapacity, session.hasCapacity else { return }
        hasCapacity = true
        onWritable?()
    }

    /// Continues on a new back channel, whose client has everything up to an array.
    /// - Parameter pollMilliseconds: nil for a stream; otherwise the time that the response may wait for output.
    func attach(_ new: BackChannel, acknowledging id: Int64?, pollMilliseconds: Int?) {
        // The client no longer reads the previous one.
        backChannel?.write(WebChannelSession.Output(bytes: [], endsBackChannel: true))
        if let id {
            session.acknowledge(id)
            _ = countQueued()
        }
        if isFinished, session.isAcknowledged {
            // The client knows that the stream has ended; nothing will be written here.
            new.write(WebChannelSession.Output(bytes: [], endsBackChannel: true))
            return end()
        }
        backChannel = new
        rank(.attended)
        session.attach(polls: pollMilliseconds != nil)
        attachedAt = EventLoop.monotonicNanoseconds()
        writtenAt = attachedAt
        pollEnds = pollMilliseconds.map { attachedAt + UInt64($0) * 1_000_000 }
        new.onBreak = { [weak self, weak new] in if let self, self.backChannel === new { self.detached() } }
        new.onWritable = { [weak self] in self?.flush() }
        notifyCapacity()
        flush()
        scheduleTimer()
    }

    private func detached() {
        backChannel = nil
        rank(.unattended)
        session.detach()
        hasCapacity = session.hasCapacity
        scheduleTimer()
    }

    /// The client terminates the session, or sends no request for too long.
    func abandon() {
        if !isFinished {
            isFinished = true
            cancellation.cancel()
            observed(Status(.cancelled, "The client has disconnected."))
            let onCancel = onCancel
            forgetStream()
            onCancel?()
        }
        end()
    }

    private func end() {
        timer?.cancel()
        timer = nil
        backChannel?.write(WebChannelSession.Output(bytes: [], endsBackChannel: true))
        backChannel = nil
        forget()
    }

    // MARK: Output

    /// The output of one tick of the loop is sent as one frame.
    private func flushLater() {
        guard backChannel != nil, !isFlushScheduled else { return }
        isFlushScheduled = true
        loop.execute { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    private func flush() {
        while let channel = backChannel, channel.hasCapacity, let output = session.takeOutput() {
            channel.write(output)
            writtenAt = EventLoop.monotonicNanoseconds()
            if output.endsBackChannel { detached() }
        }
    }

    // MARK: Time

    private func scheduleTimer() {
        timer?.cancel()
        let delay: Int
        if backChannel == nil {
            delay = (isFinished ? Limits.webChannelFarewellSeconds : Limits.webChannelIdleSeconds) * 1000
        } else {
            let keepAlive = writtenAt + UInt64(Limits.webChannelKeepAliveSeconds) * 1_000_000_000
            let due = min(pollEnds ?? .max, keepAlive)
            let now = EventLoop.monotonicNanoseconds()
            delay = due > now ? Int((due - now + 999_999) / 1_000_000) : 0
        }
        timer = loop.schedule(afterMilliseconds: delay) { [weak self] in self?.wake() }
    }

    private func wake() {
        guard backChannel != nil else { return abandon() }
        let now = EventLoop.monotonicNanoseconds()
        let isSilent = now >= writtenAt + UInt64(Limits.webChannelKeepAliveSeconds) * 1_000_000_000
        if isSilent || now >= pollEnds ?? .max {
            session.appendNoop()
            flush()
            if let channel = backChannel {
                // Nothing could be written: a session that has ended sends nothing more, or its client takes nothing.
                // The timer must not fire again immediately and forever.
                if pollEnds != nil {
                    channel.write(WebChannelSession.Output(bytes: [], endsBackChannel: true))
                    return detached()
                }
                writtenAt = now
            }
        }
        let lifetimeEnds = attachedAt + UInt64(Limits.webChannelLifetimeSeconds) * 1_000_000_000
        if let channel = backChannel, pollEnds == nil, now >= lifetimeEnds, channel.hasCapacity {
            channel.write(WebChannelSession.Output(bytes: [], endsBackChannel: true))
            return detached()
        }
        scheduleTimer()
    }
}
