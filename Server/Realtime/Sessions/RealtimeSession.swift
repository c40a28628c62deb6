import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthRules

/// One client's connection: its requests, its listens, and its disconnect writes.
///
/// Requests are begun and answered in the order in which they arrive. The changes that a write makes are sent before
/// the answer to the write: both pass from the writer's thread to the loop in this order. A client that does not read
/// receives no further changes. Its listens become stale and are sent whole when there is capacity again. Until then no
/// answer is sent, because a client takes the answer to a write as a promise that it has received the write's changes.
///
/// `@unchecked Sendable`: the state belongs to the loop. Sources: the persistent connection of the public SDKs, and the
/// documentation of `onDisconnect`.
package final class RealtimeSession: @unchecked Sendable {
    /// Identifies the connection to the connection that follows it. Cannot be guessed.
    let id: String
    let service: RealtimeService
    let namespace: RealtimeNamespace
    let loop: EventLoop
    private(set) var carrier: (any RealtimeCarrier)?

    /// The identity of requests from now on.
    var identity = RealtimeIdentity.nobody
    let peer: RealtimePeer
    var requester: Requester
    /// Counts the changes of read rights: changes of identity or of rules.
    var judgement = 0
    var expiry: TokenExpiry?

    // Requests that are not begun, and the reason.
    private var waiting: [[UInt8]] = []
    private var firstWaiting = 0
    private var waitingBytes = 0
    /// The bytes of messages that the carrier has received incompletely.
    private var pieceBytes = 0
    var held: HeldBytes
    private var hasSpoken = false
    /// Set when the client has disconnected.
    let cancellation = Cancellation()
    private var isReadingPaused = false
    /// The estimated decoded size of the first waiting request, when it is known, and the memory for it.
    private var firstParsedBytes: Int?
    private var firstShare: WorkingShare?
    private var isShareAwaited = false
    /// The decoded size of unanswered requests that have no share of the memory.
    var uncountedBytes = 0
    private var holds = 0
    private var isProceeding = false

    // Answers that are not sent yet.
    var answers: [Answer] = []
    var firstAnswer = 0
    var answerBytes = 0
    var heldAnswers: HeldBytes
    /// The client's disconnect writes.
    var heldDisconnectWrites: HeldBytes
    /// Large reads for the client: one at a time, and none while a large answer waits for the client.
    var isMakingLarge = false
    var postponed = Queue<() -> Void>()
    var writesInFlight = 0
    package var readsInFlight = 0 {
        didSet { if readsInFlight == 0 { takeDeferredWrite() } }
    }
    /// A write that follows reads which have not read their version yet. Later requests wait with it. A client that
    /// listens and then writes must not receive data that already contains the write: it would apply its own write to
    /// it again.
    private var deferredWrite: (request: RealtimeRequest, memory: Memory)?

    package var listens: [RealtimeTarget: SessionListen] = [:]
    /// Listens whose client lacks changes, or whose rights are being checked.
    var unsettled: [ObjectIdentifier: SessionListen] = [:]
    private var staleListens: [SessionListen] = []
    /// The last message sent, when it was a push without a tag.
    weak var lastPush: RealtimePush?

    var judgements = SessionJudgement()
    var disconnect: SessionDisconnect
    private(set) var isEnded = false
    private var whenOver: [() -> Void] = []
    private var isOver = false

    /// The answer to a request, in the order of the requests.
    final class Answer {
        enum Content {
            case small([UInt8])
            case large(LargeMessage)
            case sent

            var sizeBytes: Int { if case .small(let string) = self { string.count } else { 0 } }
        }

        let number: Int64
        var content: Content?
        /// The request's memory, until it is answered.
        var memory: Memory

        init(_ number: Int64, _ memory: Memory) {
            self.number = number
            self.memory = memory
        }
    }

    /// The memory that a request uses until it is answered: a share of the memory for requests, or of each connection's
    /// own part.
    struct Memory {
        var share: WorkingShare?
        var uncountedBytes = 0
        /// Used in place of the share for requests whose duration the client decides.
        var kept: MemoryReservation?
    }

    /// - Parameter host: the host name under which the client reached the server; it reconnects to the same name.
    package init(
        _ carrier: any RealtimeCarrier, host: String, _ namespace: RealtimeNamespace, _ service: RealtimeService
    ) {
        self.carrier = carrier
        self.namespace = namespace
        self.service = service
        loop = carrier.loop
        peer = carrier.peer
        requester = RealtimeIdentity.nobody.requester(at: peer.address, connection: peer.connection)
        held = HeldBytes(service.large.memory.received, for: requester)
        heldAnswers = HeldBytes(service.large.memory.unread, for: requester)
        heldDisconnectWrites = HeldBytes(service.large.memory.received, for: requester)
        id = Self.makeID()
        disconnect = SessionDisconnect()
        namespace.users.add(self)
        carrier.send(
            RealtimeServerMessage.handshake(nowMilliseconds: service.nowMilliseconds, host: host, session: id))
    }

    /// 192 random bits.
    private static func makeID() -> String {
        let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_".utf8)
        var generator = SystemRandomNumberGenerator()
        return String(decoding: (0..<32).map { _ in alphabet[Int(generator.next() & 63)] }, as: UTF8.self)
    }

    // MARK: Messages

    /// Receives a whole message of the client.
    package func receive(_ string: [UInt8]) {
        if isEnded { return }
        if !hasSpoken {
            hasSpoken = true
            service.connections.change(id, to: .attended)
        }
        waiting.append(string)
        waitingBytes += string.count
        proceed()
        let isFull = waitingBytes > waitingBytesMax || waiting.count > Limits.realtimeRequestsWaitingMax
        if !isEnded, isFull, !isReadingPaused {
            isReadingPaused = true
            carrier?.pauseReading()
        }
    }

    private var waitingBytesMax: Int {
        identity.auth == nil && identity.scope == nil
            ? Limits.realtimeUnknownWaitingBytesMax : Limits.realtimeWaitingBytesMax
    }

    /// Must be called with the number of bytes that the carrier stores: incomplete messages, and messages that it
    /// delays.
    func hold(pieceBytes: Int) {
        self.pieceBytes = pieceBytes
        countHeld()
    }

    /// Refuses the last requests of a client that makes the server store more than its share. A client that does so by
    /// an unfinished message is disconnected.
    private func countHeld() {
        while !held.set(waitingBytes + pieceBytes), !isEnded {
            let count = waiting.count - firstWaiting
            guard count > (isShareAwaited ? 1 : 0), let last = waiting.popLast() else {
                carrier?.end(.busy)
                return
            }
            waitingBytes -= last.count
            if count == 1 {
                firstParsedBytes = nil
                firstShare = nil
            }
            refuse(undecoded: last, Self.busy)
        }
    }

    private static let busy = Status.unavailable("The server holds too many unfinished requests.")

    /// Answers a request that is not decoded.
    private func refuse(undecoded string: [UInt8], _ status: Status) {
        if isEnded { return }
        var finder = RequestNumberFinder()
        finder.scan(through: string)
        // Clients number their requests.
        guard let number = finder.number else {
            carrier?.end(.busy)
            return
        }
        send(RealtimeServerMessage.reply(to: number, RealtimeRefusal(status)))
    }

    /// Whether the client reads what is sent to it.
    var isCongested: Bool { (carrier?.queuedBytes ?? 0) > Limits.realtimeQueueBytesMax }

    private var mayBegin: Bool {
        !isEnded && holds == 0 && !isCongested && answers.count - firstAnswer < Limits.realtimeAnswersWaitingMax
            && readsInFlight < Limits.realtimeReadsInFlightMax && writesInFlight < Limits.realtimeWritesInFlightMax
    }

    /// Begins as many requests as the limits allow.
    func proceed() {
        if isProceeding { return }
        isProceeding = true
        defer { isProceeding = false }
        while mayBegin, firstWaiting < waiting.count, let memory = memoryOfFirst() {
            let string = waiting[firstWaiting]
            waiting[firstWaiting] = []
            firstWaiting += 1
            waitingBytes -= string.count
            firstParsedBytes = nil
            begin(string, memory)
        }
        countHeld()
        if firstWaiting == waiting.count {
            waiting = []
            firstWaiting = 0
            if isReadingPaused, !isEnded {
                isReadingPaused = false
                carrier?.resumeReading()
            }
        } else if firstWaiting > 1000, firstWaiting * 2 > waiting.count {
            waiting.removeFirst(firstWaiting)
            firstWaiting = 0
        }
    }

    /// The memory for the first waiting request, or nil when the request must wait for it. A large request is not
    /// decoded while it would wait for reads, because the client decides how long these take.
    private func memoryOfFirst() -> Memory? {
        let string = waiting[firstWaiting]
        let bytes = firstParsedBytes ?? ParsedSize.ofJSON(string)
        firstParsedBytes = bytes
        if uncountedBytes + bytes <= Limits.realtimeUncountedRequestsBytesMax {
            firstShare = nil
            return Memory(uncountedBytes: bytes)
        }
        if bytes > Limits.realtimeUncountedRequestsBytesMax, readsInFlight > 0 { return nil }
        // A worker decodes it.
        if string.count >= LargeRequests.sizeBytesMin { return Memory() }
        if let share = firstShare ?? service.large.memory.working.takeNow(bytes, for: requester) {
            firstShare = nil
            return Memory(share: share)
        }
        hold()
        isShareAwaited = true
        service.large.memory.working.take(bytes, for: requester) { [self] share in
            loop.execute { [self] in
                isShareAwaited = false
                if !isEnded { firstShare = share }
                release()
            }
        }
        return nil
    }

    /// Begins no request before `release`.
    func hold() { holds += 1 }

    func release() {
        holds -= 1
        proceed()
    }

    private func begin(_ string: [UInt8], _ memory: Memory) {
        guard string.count >= LargeRequests.sizeBytesMin else {
            return take(Result { () throws(RealtimeFault) in try RealtimeClientMessage(string) }, memory)
        }
        hold()
        let identity = identity
        let refused: @Sendable (Status) -> Void = { [self] status in
            loop.execute { [self] in
                refuse(undecoded: string, status)
                release()
            }
        }
        service.large.run(string, isJSON: true, for: requester, cancellation: cancellation, refused: refused) {
            [self] share in
            let message = Result { () throws(RealtimeFault) in
                try RealtimeClientMessage(string) { scope in refusal(of: scope, string, identity) }
            }
            loop.execute { [self] in
                take(message, Memory(share: share))
                release()
            }
        }
    }

    /// The reason why a large write need not be decoded. May be called on any thread.
    private func refusal(
        of scope: TreeWriteScope, _ string: [UInt8], _ identity: RealtimeIdentity
    ) -> RealtimeRefusal? {
        if !service.access.mayWrite(scope, identity, namespace) { return .permissionDenied }
        do throws(Status) { try service.checkSize(of: string, identity) } catch { return RealtimeRefusal(error) }
        return nil
    }

    private func take(_ message: Result<RealtimeClientMessage, RealtimeFault>, _ memory: Memory) {
        if isEnded { return }
        switch message {
        case .failure(let fault): carrier?.end(fault)
        case .success(.ping): send(RealtimeServerMessage.pong)
        case .success(.ignored): break
        case .success(.request(let request)): take(request, memory)
        }
    }

    private func take(_ request: RealtimeRequest, _ memory: Memory) {
        if readsInFlight > 0, request.isWrite {
            deferredWrite = (request, memory)
            return hold()
        }
        var memory = memory
        if memory.share != nil, request.isRead {
            // The client's share for the comparison: a part of what it has sent, because other clients wait for the
            // working memory.
            let kept = service.large.memory.received.reservation(for: requester)
            guard kept.grow(by: request.sizeBytes) else {
                let answer = Answer(request.number, Memory())
                answers.append(answer)
                return refuse(answer, Self.busy)
            }
            memory = Memory(kept: kept)
        }
        let answer = Answer(request.number, memory)
        uncountedBytes += memory.uncountedBytes
        answers.append(answer)
        switch request.action {
        case .success(let action): begin(action, answer)
        case .failure(let refusal): refuse(answer, refusal)
        }
    }

    private func takeDeferredWrite() {
        guard let (request, memory) = deferredWrite, !isEnded else { return }
        deferredWrite = nil
        take(request, memory)
        release()
    }

    private func begin(_ action: RealtimeRequest.Action, _ answer: Answer) {
        switch action {
        case .listen(let target, let tag, let known): listen(to: target, tag: tag, known: known, answer)
        case .unlisten(let target): unlisten(target, answer)
        case .get(let target): get(target, answer)
        case .put(let update, let hash): write(update, hash: hash, answer)
        case .merge(let update): write(update, hash: nil, answer)
        case .disconnectPut(let change): addDisconnectWrite([change], answer) { $0.put(change.path, change.node) }
        case .disconnectMerge(let changes): addDisconnectWrite(changes, answer) { $0.merge(changes) }
        case .disconnectCancel(let path): addDisconnectWrite([], answer) { $0.cancel(path) }
        case .authenticate(let credential, let override): authenticate(credential, override, answer)
        case .unauthenticate:
            change(to: .nobody)
            journalIdentity { [self] in confirm(answer, data: Array(#""""#.utf8)) }
        case .noted: confirm(answer)
        }
    }

    // MARK: Pushes

    /// - Returns: false when there is no capacity. The listen is then stale.
    func send(_ push: RealtimePush, of listen: SessionListen) -> Bool {
        guard let carrier else { return true }
        // A change is sent once for all listens that have no query.
        if listen.tag == nil, lastPush === push { return true }
        lastPush = nil
        if !carrier.send(push, tag: listen.tag) { return false }
        if listen.tag == nil { lastPush = push }
        return true
    }

    /// Drops the changes that wait for the client. The client then receives all data that it listens to.
    func lostPushes() {
        if isEnded { return }
        lastPush = nil
        for listen in listens.values where listen.handle.isLive { listen.listenIsStale(listen.handle) }
        // The other listens waited only for the large change among them.
        loadStaleListens()
        makeLarge()
    }

    /// Answers wait until the listen is settled again.
    func unsettle(_ listen: SessionListen) { unsettled[ObjectIdentifier(listen)] = listen }

    func settle(_ listen: SessionListen) {
        if unsettled.removeValue(forKey: ObjectIdentifier(listen)) != nil, unsettled.isEmpty { sendAnswers() }
    }

    /// Marks the listen to be loaded again when there is capacity.
    func becameStale(_ listen: SessionListen) {
        unsettle(listen)
        staleListens.append(listen)
        loadStaleListens()
    }

    private func loadStaleListens() {
        guard let carrier, !carrier.hasLarge, carrier.queuedBytes <= Limits.realtimeReloadBytesMax else { return }
        let listens = staleListens
        staleListens = []
        for listen in listens { listen.reload() }
    }

    /// The client has read some data.
    package func becameWritable() {
        if isEnded { return }
        loadStaleListens()
        makeLarge()
        proceed()
    }

    // MARK: The end

    /// The client has disconnected.
    package func carrierEnded() {
        if isEnded { return }
        isEnded = true
        cancellation.cancel()
        carrier = nil
        expiry?.cancel()
        for listen in listens.values { listen.handle.cancel() }
        listens = [:]
        unsettled = [:]
        staleListens = []
        judgements.end()
        waiting = []
        firstWaiting = 0
        waitingBytes = 0
        firstShare = nil
        deferredWrite = nil
        hold(pieceBytes: 0)
        service.connections.remove(id)
        answers = []
        firstAnswer = 0
        answerBytes = 0
        _ = heldAnswers.set(0)
        postponed = Queue()
        runDisconnectWrites { [self] in
            isOver = true
            _ = heldDisconnectWrites.set(0)
            namespace.users.remove(self)
            let jobs = whenOver
            whenOver = []
            for job in jobs { job() }
        }
    }

    /// Ends the connection because its client has connected again. `done` is called when the disconnect writes are
    /// made. May be called on any thread.
    func replace(_ done: @escaping @Sendable () -> Void) {
        loop.execute { [self] in
            if isOver { return done() }
            whenOver.append(done)
            carrier?.end(RealtimeFault(kind: .malformed, reason: "The client has connected again."))
            carrierEnded()
        }
    }
}

extension RealtimeSession: RealtimeUser {
    func makeSpace() {
        carrier?.end(.busy)
        carrierEnded()
    }

    func rulesChanged() {
        if !isEnded { judgeListens() }
    }
}
