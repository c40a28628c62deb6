import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthEvents
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire
import Synchronization

/// One reader of a database's change feed: an answer that is written as fast as the client reads.
///
/// Workers read a step at a time, and only while the connection takes more: at most a step and the connection's queue are
/// held. At the end of the feed the reader waits for a commit of documents that may be among those that it wants; past others
/// it moves with each heartbeat. `@unchecked Sendable`: belongs to the loop of its exchange.
final class ChangeStream: @unchecked Sendable {
    private let exchange: HTTPExchange
    private let call: RESTCall
    private let service: FirestoreService
    private let readers: ChangeReaders
    /// As whose reader it counts.
    private var credential: [UInt8] = []
    private let database: Database
    private let parameters: ChangeParameters
    private let reading: ChangeReading
    private let requester: Requester
    private let heartbeatMilliseconds: Int
    private let clock: any Clock
    private let cancellation = Cancellation()
    private var waker: ChangeWaker?
    private var hasStarted = false
    private var isEnded = false
    /// A step is under way.
    private var isReading = false
    private var isFull = false
    /// Everything has been read that there was.
    private var isWaiting = false
    /// Nothing came for as long as the client wants to wait.
    private var isWaitOver = false
    /// The position; nil within a commit or a snapshot.
    private var token: ChangeToken?
    /// The last position that the client has.
    private var sentToken: ChangeToken?
    /// The step under way ends with a heartbeat.
    private var isBeatDue = false
    /// Passing failures since the last step that had none.
    private var failures = 0
    private var waitTimer: Timer?
    private var heartbeat: Timer?
    private var retryTimer: Timer?
    private var expiry: TokenExpiry?

    init(
        _ exchange: HTTPExchange, _ call: RESTCall, _ parameters: ChangeParameters, _ requester: Requester,
        of database: Database, _ service: FirestoreService, _ readers: ChangeReaders, heartbeatMilliseconds: Int,
        clock: any Clock
    ) {
        self.exchange = exchange
        self.call = call
        self.service = service
        self.readers = readers
        self.database = database
        self.parameters = parameters
        self.requester = requester
        self.heartbeatMilliseconds = heartbeatMilliseconds
        self.clock = clock
        reading = ChangeReading(parameters, of: database)
        if case .after(let token) = parameters.start { sentToken = token }
    }

    private var loop: EventLoop { exchange.loop }

    /// - Throws: RESOURCE_EXHAUSTED when there are too many readers; why the database is closed.
    func begin(_ identity: Identity) throws(Status) {
        credential = identity.asAuthor
        try readers.begin(database.name, credential)
        if parameters.wait != .milliseconds(0) {
            let waker = ChangeWaker(self, loop, reading.wanted)
            guard database.changes.add([parameters.scope], for: waker) else {
                readers.end(database.name, credential)
                throw database.closedStatus ?? .unavailable("The database is closed.")
            }
            self.waker = waker
        }
        exchange.onCancel = { [self] in close(Status(.cancelled, "The client has disconnected.")) }
        exchange.onWritable = { [self] in
            isFull = false
            proceed()
        }
        service.streams.add(self) { [weak self] status in self?.loop.execute { [weak self] in self?.fail(status) } }
        if case .client(let client?) = identity {
            expiry = TokenExpiry(client.end, on: loop) { [weak self] status in self?.fail(status) }
        }
        proceed()
    }

    // MARK: Reading

    private func proceed() {
        if isEnded || isReading || isFull || isWaiting { return }
        isReading = true
        waker?.rearm()
        let arrived: @Sendable (ChangeStep) -> Void = { [self] step in loop.execute { [self] in self.arrived(step) } }
        let refused: @Sendable (Status) -> Void = { arrived(ChangeStep(failure: $0)) }
        if reading.needsTime { return readAtLength(arrived, refused) }
        service.pool.run(.brief, for: requester, cancellation: cancellation, refused: refused) { [reading] in
            arrived(reading.readOn())
        }
    }

    private func readAtLength(
        _ arrived: @escaping @Sendable (ChangeStep) -> Void, _ refused: @escaping @Sendable (Status) -> Void
    ) {
        let (pool, requester, cancellation, reading) = (service.pool, requester, cancellation, reading)
        service.longReads.whenFree(for: requester, cancellation: cancellation) { admitted in
            switch admitted {
            case .failure(let status): refused(status)
            case .success(let read):
                pool.runInSlices(.long, for: requester, cancellation: cancellation, refused: refused) { slice in
                    let step = reading.readOn { () throws(Status) in
                        slice.giveWay()
                        try cancellation.check()
                    }
                    read.end()
                    arrived(step)
                }
            }
        }
    }

    private func arrived(_ step: ChangeStep) {
        isReading = false
        if isEnded { return }
        let isPassing = step.failure.map { mayPass($0) } ?? false
        if let failure = step.failure, step.lines == 0, !isPassing { return fail(failure) }
        start()
        if step.failure == nil || step.token != nil || step.lines > 0 { token = step.token }
        if step.lines > 0 {
            isFull = !exchange.write(step.bytes)
            sentToken = step.lastToken
            waitTimer?.cancel()
            waitTimer = nil
            isWaitOver = false
        }
        if isPassing { return retryLater() }
        if let failure = step.failure { return fail(failure) }
        failures = 0
        if step.isOver || step.isAtEnd && isWaitOver { return end() }
        if isBeatDue {
            isBeatDue = false
            if step.lines == 0, !isFull { writeHeartbeat() }
        }
        isWaiting = step.isAtEnd && !(waker?.isAwake ?? false)
        if isWaiting { awaitChange() } else { proceed() }
    }

    // MARK: Failures

    private static let failuresMax = 4
    private static let retryMilliseconds = 100

    /// Whether the step is worth another attempt: a client would have to begin a snapshot anew.
    private func mayPass(_ failure: Status) -> Bool {
        (failure.code == .unavailable || failure.code == .resourceExhausted) && hasStarted
            && failures < Self.failuresMax && database.closedStatus == nil
    }

    private func retryLater() {
        // Nothing else reads meanwhile.
        isReading = true
        failures += 1
        retryTimer = loop.schedule(afterMilliseconds: Self.retryMilliseconds << failures) { [weak self] in
            guard let self, !self.isEnded else { return }
            self.isReading = false
            self.proceed()
        }
    }

    // MARK: Waiting

    /// Reads on: a commit was made, or the position is to move.
    func wake() {
        guard isWaiting else { return }
        isWaiting = false
        proceed()
    }

    private func awaitChange() {
        guard case .milliseconds(let milliseconds) = parameters.wait, waitTimer == nil else { return }
        waitTimer = loop.schedule(afterMilliseconds: milliseconds) { [weak self] in
            guard let self, !self.isEnded else { return }
            self.isWaitOver = true
            // The last step is up to the present.
            self.wake()
        }
    }

    private func beat() {
        heartbeat = loop.schedule(afterMilliseconds: heartbeatMilliseconds) { [weak self] in
            guard let self, !self.isEnded else { return }
            if self.isWaiting {
                self.isBeatDue = true
                self.wake()
            } else if !self.isFull {
                self.writeHeartbeat()
            }
            self.beat()
        }
    }

    private func writeHeartbeat() {
        let bytes: [UInt8]
        switch parameters.form {
        case .lines: bytes = ChangeLine.heartbeat(clock.now(), token) + [UInt8(ascii: "\n")]
        // Without data it's no event, but browsers note the id.
        case .events: bytes = Array(": \n\(token.map { "id: \($0.string)\n" } ?? "")\n".utf8)
        }
        if token != nil { sentToken = token }
        isFull = !exchange.write(bytes)
    }

    // MARK: The answer

    private func start() {
        if hasStarted { return }
        hasStarted = true
        let type = parameters.form == .lines ? "application/x-ndjson" : "text/event-stream"
        exchange.start(
            status: 200,
            headers: [HTTPHeader("content-type", type), HTTPHeader("cache-control", "no-store")]
                + CORS.headers(for: exchange.head))
        beat()
    }

    private func end() {
        // The position behind commits of which no line was sent.
        if token != nil, token != sentToken { writeHeartbeat() }
        close(.ok)
        exchange.end()
    }

    /// The last line says why; before the first one the answer's status does.
    func fail(_ status: Status) {
        if isEnded { return }
        close(status)
        let code = ChangesHTTP.httpStatus(status)
        let body = ErrorBody.json(status, http: code)
        guard hasStarted else {
            return exchange.respond(
                status: code,
                headers: [HTTPHeader("content-type", "application/json; charset=UTF-8")]
                    + CORS.headers(for: exchange.head), body: body)
        }
        switch parameters.form {
        case .lines: exchange.write(body + [UInt8(ascii: "\n")])
        case .events: exchange.write(Array("event: error\ndata: ".utf8) + body + Array("\n\n".utf8))
        }
        exchange.end()
    }

    private func close(_ status: Status) {
        if isEnded { return }
        isEnded = true
        call.end(status)
        cancellation.cancel()
        if let waker { database.changes.remove([parameters.scope], for: waker) }
        waker = nil
        waitTimer?.cancel()
        retryTimer?.cancel()
        heartbeat?.cancel()
        expiry?.cancel()
        service.streams.remove(self)
        readers.end(database.name, credential)
    }
}

/// Wakes a reader that waits for a commit; commits meanwhile cost it nothing.
private final class ChangeWaker: ChangeReceiver {
    private let stream: ChangeStream
    private let loop: EventLoop
    /// What the keys of all documents that are wanted begin with.
    private let prefix: [UInt8]
    /// Whether a commit came since the last step began.
    private let hasChanged = Atomic(false)

    /// Changes of a commit whose keys are compared on the writer's thread.
    private static let comparedMax = 16

    init(_ stream: ChangeStream, _ loop: EventLoop, _ wanted: ChangeFeed.Wanted) {
        self.stream = stream
        self.loop = loop
        prefix = wanted.prefix
    }

    private func mayWant(_ changes: [Change]) -> Bool {
        prefix.isEmpty || changes.count > Self.comparedMax || changes.contains { $0.key.starts(with: prefix) }
    }

    var isAwake: Bool { hasChanged.load(ordering: .acquiring) }

    /// Before a step: what is committed from here on may not be in its snapshot.
    func rearm() { hasChanged.store(false, ordering: .sequentiallyConsistent) }

    func receive(_ event: ChangeEvent) {
        switch event {
        case .closed(let status): loop.execute { [stream] in stream.fail(status) }
        case .committed(let set, _):
            if mayWant(set.changes) { change() }
        case .cleared: change()
        }
    }

    private func change() {
        if hasChanged.exchange(true, ordering: .sequentiallyConsistent) { return }
        loop.execute { [stream] in stream.wake() }
    }
}
