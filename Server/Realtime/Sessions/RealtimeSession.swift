import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthRules
import HearthTree
import HearthTreeStorage

/// What carries the messages of a session: a WebSocket, or requests of a client that has none. All on one loop.
package protocol RealtimeCarrier: AnyObject {
    var loop: EventLoop { get }
    var peer: RealtimePeer { get }
    /// Bytes that wait for the client in memory.
    var queuedBytes: Int { get }
    /// Whether a message that is in a file waits for it, too.
    var hasLarge: Bool { get }
    /// On whose account the client is from now on.
    func belongs(to requester: Requester)
    func send(_ message: [UInt8])
    func send(_ message: LargeMessage)
    /// A push that others may get, too.
    /// - Returns: false when there is no room for it.
    func send(_ push: RealtimePush, tag: Int64?) -> Bool
    /// No messages until `resumeReading`.
    func pauseReading()
    func resumeReading()
    /// Ends the connection. `RealtimeSession.carrierEnded` comes in any case.
    func end(_ fault: RealtimeFault)
}

/// Where a client is: its address, and the number of its connection.
package struct RealtimePeer: Sendable {
    var address: String
    var connection: UInt64

    package init(address: String, connection: UInt64) {
        self.address = address
        self.connection = connection
    }
}

/// One client's connection: its requests, its listens, and what it wants done when it is gone.
///
/// Requests are begun in their order, and answered in it. What a write of the client has changed is sent before the answer to
/// the write: both come from the writer's thread to the loop, in this order. A client that doesn't read what it is sent
/// gets no further changes: its listens become stale, and are sent whole when there is room; until then no answer leaves,
/// for a client takes the answer to a write as a promise that it has seen what the write did.
///
/// `@unchecked Sendable`: belongs to the loop. Sources: the public SDKs' persistent connection, and the documentation of
/// `onDisconnect`.
package final class RealtimeSession: @unchecked Sendable {
    /// Names the connection to the one that follows it; cannot be guessed.
    let id: String
    let service: RealtimeService
    let namespace: RealtimeNamespace
    let loop: EventLoop
    private(set) var carrier: (any RealtimeCarrier)?

    /// For whom requests are from now on.
    var identity = RealtimeIdentity.nobody
    let peer: RealtimePeer
    var requester: Requester
    /// Counts changes of what may be read: of identity or rules.
    var judgement = 0
    var expiry: TokenExpiry?

    // Requests that were not begun, and why not.
    private var waiting: [[UInt8]] = []
    private var firstWaiting = 0
    private var waitingBytes = 0
    /// Bytes of messages that the carrier hasn't completely.
    private var pieceBytes = 0
    var held: HeldBytes
    private var hasSpoken = false
    /// Set when the client is gone.
    let cancellation = Cancellation()
    private var isReadingPaused = false
    /// What the first of them becomes when it is decoded, when that is known, and the memory for it.
    private var firstParsedBytes: Int?
    private var firstShare: WorkingShare?
    /// What requests have become that are not answered, and have no share of the memory.
    var uncountedBytes = 0
    private var holds = 0
    private var isProceeding = false

    // Answers that are not sent.
    var answers: [Answer] = []
    var firstAnswer = 0
    var answerBytes = 0
    var heldAnswers: HeldBytes
    /// What the client wants written when it is gone.
    var heldWishes: HeldBytes
    /// What is read for the client and large: one at a time, and none while one waits for the client.
    var isMakingLarge = false
    var postponed = Queue<() -> Void>()
    var writesInFlight = 0
    package var readsInFlight = 0 {
        didSet { if readsInFlight == 0 { takeDeferredWrite() } }
    }
    /// A write that came behind reads which have not seen their state yet; what comes after it waits with it. A client that
    /// listens and then writes must not be given data that has the write already: it would add its own write to it.
    private var deferredWrite: (request: RealtimeRequest, memory: Memory)?

    package var listens: [RealtimeTarget: SessionListen] = [:]
    /// Listens whose client lacks changes, or of which is being asked whether they may go on.
    var unsettled: [ObjectIdentifier: SessionListen] = [:]
    private var staleListens: [SessionListen] = []
    /// The last thing sent, when that was a push without a tag.
    weak var lastPush: RealtimePush?

    var judgements = SessionJudgement()
    var disconnect: SessionDisconnect
    private(set) var isEnded = false
    private var whenOver: [() -> Void] = []
    private var isOver = false

    /// The answer to a request, in the order of requests.
    final class Answer {
        enum Content {
            case small([UInt8])
            case large(LargeMessage)
            case sent

            var sizeBytes: Int { if case .small(let string) = self { string.count } else { 0 } }
        }

        let number: Int64
        var content: Content?
        /// Of the request, until it is answered.
        var memory: Memory

        init(_ number: Int64, _ memory: Memory) {
            self.number = number
            self.memory = memory
        }
    }

    /// What a request takes until it is answered: a share of the memory for requests, or of what every connection may have.
    struct Memory {
        var share: WorkingShare?
        var uncountedBytes = 0
        /// In place of the share, of what may take as long as the client likes.
        var kept: MemoryReservation?
    }

    /// - Parameter host: under which the client has reached the server; it will come there again.
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
        heldWishes = HeldBytes(service.large.memory.received, for: requester)
        id = Self.makeID()
        disconnect = SessionDisconnect()
        namespace.users.add(self)
        carrier.send(
            RealtimeMessages.handshake(nowMilliseconds: service.nowMilliseconds, host: host, session: id))
    }

    /// 192 random bits.
    private static func makeID() -> String {
        let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_".utf8)
        var generator = SystemRandomNumberGenerator()
        return String(decoding: (0..<32).map { _ in alphabet[Int(generator.next() & 63)] }, as: UTF8.self)
    }

    // MARK: Messages

    /// A whole message of the client.
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

    /// To be told how much the carrier has of messages that aren't complete, or that it keeps back.
    func hold(pieceBytes: Int) {
        self.pieceBytes = pieceBytes
        countHeld()
    }

    /// A client that makes us hold more than its part is disconnected.
    private func countHeld() {
        if !held.set(waitingBytes + pieceBytes), !isEnded { carrier?.end(.busy) }
    }

    /// Whether the client reads what it is sent.
    var isCongested: Bool { (carrier?.queuedBytes ?? 0) > Limits.realtimeQueueBytesMax }

    private var mayBegin: Bool {
        !isEnded && holds == 0 && !isCongested && answers.count - firstAnswer < Limits.realtimeAnswersWaitingMax
            && readsInFlight < Limits.realtimeReadsInFlightMax && writesInFlight < Limits.realtimeWritesInFlightMax
    }

    /// Begins requests, as far as they may.
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

    /// The memory for the first request that waits; nil when it has to wait for that. What is large isn't decoded while it would
    /// have to wait for reads, which may take as long as the client likes.
    private func memoryOfFirst() -> Memory? {
        let string = waiting[firstWaiting]
        let bytes = firstParsedBytes ?? ParsedSize.ofJSON(string)
        firstParsedBytes = bytes
        if uncountedBytes + bytes <= Limits.realtimeUncountedRequestsBytesMax {
            firstShare = nil
            return Memory(uncountedBytes: bytes)
        }
        if bytes > Limits.realtimeUncountedRequestsBytesMax, readsInFlight > 0 { return nil }
        // A worker sees to it.
        if string.count >= LargeRequests.sizeBytesMin { return Memory() }
        if let share = firstShare ?? service.large.memory.working.takeNow(bytes) {
            firstShare = nil
            return Memory(share: share)
        }
        hold()
        service.large.memory.working.take(bytes, for: requester) { [self] share in
            loop.execute { [self] in
                if !isEnded { firstShare = share }
                release()
            }
        }
        return nil
    }

    /// No request is begun before `release`.
    func hold() { holds += 1 }

    func release() {
        holds -= 1
        proceed()
    }

    private func begin(_ string: [UInt8], _ memory: Memory) {
        guard string.count >= LargeRequests.sizeBytesMin else {
            return take(Result { () throws(RealtimeFault) in try RealtimeMessage(string) }, memory)
        }
        hold()
        let identity = identity
        let refused: @Sendable (Status) -> Void = { [self] _ in
            loop.execute { [self] in
                carrier?.end(.busy)
                release()
            }
        }
        service.large.run(string, isJSON: true, for: requester, cancellation: cancellation, refused: refused) {
            [self] share in
            let message = Result { () throws(RealtimeFault) in
                try RealtimeMessage(string) { scope in refusal(of: scope, string, identity) }
            }
            loop.execute { [self] in
                take(message, Memory(share: share))
                release()
            }
        }
    }

    /// Why a large write needn't be decoded. On any thread.
    private func refusal(
        of scope: TreeWriteScope, _ string: [UInt8], _ identity: RealtimeIdentity
    ) -> RealtimeRefusal? {
        if !service.access.mayWrite(scope, identity, namespace) { return .permissionDenied }
        do throws(Status) { try service.checkSize(of: string, identity) } catch { return RealtimeRefusal(error) }
        return nil
    }

    private func take(_ message: Result<RealtimeMessage, RealtimeFault>, _ memory: Memory) {
        if isEnded { return }
        switch message {
        case .failure(let fault): carrier?.end(fault)
        case .success(.ping): send(RealtimeMessages.pong)
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
            // What the client has, to compare with: a part of what it has sent, for others wait for the working memory.
            let kept = service.large.memory.received.reservation(for: requester)
            guard kept.grow(by: request.sizeBytes) else { return endBusy() }
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
        case .disconnectPut(let change): wish([change], answer) { $0.put(change.path, change.node) }
        case .disconnectMerge(let changes): wish(changes, answer) { $0.merge(changes) }
        case .disconnectCancel(let path): wish([], answer) { $0.cancel(path) }
        case .authenticate(let credential, let override): authenticate(credential, override, answer)
        case .unauthenticate:
            change(to: .nobody)
            keepIdentity { [self] in confirm(answer, data: Array(#""""#.utf8)) }
        case .noted: confirm(answer)
        }
    }

    // MARK: Pushes

    /// - Returns: false when there is no room: the listen is stale from now on.
    func send(_ push: RealtimePush, of listen: SessionListen) -> Bool {
        guard let carrier else { return true }
        // What several listens without a query hear is said once.
        if listen.tag == nil, lastPush === push { return true }
        lastPush = nil
        if !carrier.send(push, tag: listen.tag) { return false }
        if listen.tag == nil { lastPush = push }
        return true
    }

    /// Changes that waited for the client are lost: it is sent the whole of what it listens to.
    func lostPushes() {
        if isEnded { return }
        lastPush = nil
        for listen in listens.values where listen.handle.isLive { listen.listenIsStale(listen.handle) }
        // What was large among them was all that others have waited for.
        loadStaleListens()
        makeLarge()
    }

    /// Answers wait until the listen is settled again.
    func unsettle(_ listen: SessionListen) { unsettled[ObjectIdentifier(listen)] = listen }

    func settle(_ listen: SessionListen) {
        if unsettled.removeValue(forKey: ObjectIdentifier(listen)) != nil, unsettled.isEmpty { sendAnswers() }
    }

    /// To be loaded again when there is room.
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

    /// The client has read some.
    package func becameWritable() {
        if isEnded { return }
        loadStaleListens()
        makeLarge()
        proceed()
    }

    // MARK: The end

    /// The client is gone.
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
            _ = heldWishes.set(0)
            namespace.users.remove(self)
            let jobs = whenOver
            whenOver = []
            for job in jobs { job() }
        }
    }

    /// Ends the connection, because its client has come again; tells when what it wanted done is done. On any thread.
    func replace(_ done: @escaping @Sendable () -> Void) {
        loop.execute { [self] in
            if isOver { return done() }
            whenOver.append(done)
            carrier?.end(RealtimeFault(kind: .malformed, reason: "The client has come again."))
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
