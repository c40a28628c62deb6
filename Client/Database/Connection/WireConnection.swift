import HearthConcurrency
import HearthTree

/// The connection to the server: which messages are sent, in which order, and what is received. A state machine
/// without I/O; the `WireDriver` has socket, clock and tokens.
///
/// All state belongs to the engine's queue. Every request of the engine is stored in the `WireOutbox`. It is sent
/// when the connection is ready: after the server's handshake and the answer to the credentials. Requests without an
/// answer when the connection breaks are sent again over the next one. Puts with a hash and single reads fail instead.
///
/// Source: the protocol of the Realtime Database's SDKs.
final class WireConnection {
    enum Phase: Equatable {
        /// There is an interrupt reason.
        case offline
        /// The next attempt is scheduled.
        case waiting
        case fetchingToken
        /// The socket is being opened, or the server did not send its handshake yet.
        case opening
        /// The credentials are sent and not answered.
        case authenticating
        case ready
    }

    static let keepAliveMilliseconds: Int64 = 45_000
    static let handshakeMilliseconds = 30_000
    static let stableMilliseconds = 30_000
    /// After this number of consecutive rejections of the credentials the next attempt uses the longest delay.
    static let refusalsMax = 3
    /// Redirects that are followed at once, until a connection has lasted.
    static let redirectsMax = 3
    /// Source: the SDKs for Apple platforms.
    static let reconnecting = Backoff.Policy(
        firstMilliseconds: 1_000, factor: 1.3, maxMilliseconds: 30_000, jitter: 0.3...1)
    static let shutdownReason = "server_shutdown"

    unowned let driver: any WireDriver
    weak var delegate: (any DatabaseConnectionDelegate)?
    /// Receives the difference between the server's clock and the local one, in addition to the delegate.
    var onServerTimeOffset: ((Int64) -> Void)?

    private(set) var phase: Phase = .offline
    /// The interrupt reasons; engine and connection have their own.
    private var interruptReasons: Set<String>
    private var backoff = Backoff(WireConnection.reconnecting)
    private var attempt = 0
    private var joiner = WireFrameJoiner()
    /// Whether the delegate is notified of this connection.
    private var isAnnounced = false
    private var lastSession: String?
    /// Only until the first greeting. Later changes of the network are normal.
    private var warnsWhenUnreachable = true
    /// The host that the server named; nil for the configured one.
    private var host: String?
    private var redirects = 0
    /// By the monotonic clock.
    private var lastSentMilliseconds: Int64 = 0

    /// The user's token; nil when nobody is signed in.
    private var token: String?
    /// The token that the server knows on this connection.
    private var notifiedToken: String?
    /// Numbers the requests for tokens; only the answer to the last one counts.
    private var tokenRequest = 0
    private var mustRefreshToken = false
    private var refusals = 0
    /// Whether the user is changing. Requests made in the meantime are sent as the next user.
    private var isAwaitingToken = false

    var nextRequest = 1
    /// The requests whose answers are expected, by request number.
    var requests: [Int: WireAnswer] = [:]
    var outbox = WireOutbox()
    private var isFlushPlanned = false

    /// - Parameter interruptReasons: the connection stays offline until `goOnline` has removed all of them.
    init(driver: any WireDriver, interruptReasons: Set<String> = []) {
        self.driver = driver
        self.interruptReasons = interruptReasons
    }

    /// Begins to connect, unless there is an interrupt reason.
    func start() {
        if interruptReasons.isEmpty { plan() }
    }

    // MARK: Reasons

    func goOnline(reason: String) {
        interruptReasons.remove(reason)
        interruptReasons.remove(Self.shutdownReason)
        guard interruptReasons.isEmpty else { return }
        beginAnew()
        if phase == .offline { plan() }
    }

    func goOffline(reason: String) {
        interruptReasons.insert(reason)
        guard phase != .offline else { return }
        end(.offline, notifiesAtOnce: true)
    }

    /// The machine's network path changed.
    func networkDidChange() {
        beginAnew()
        interruptReasons.remove(Self.shutdownReason)
        guard interruptReasons.isEmpty else { return }
        switch phase {
        case .offline, .waiting: plan()
        // Use shows whether an existing connection still works. An attempt over the old network path is given up.
        case .opening: reconnect()
        case .fetchingToken, .authenticating, .ready: break
        }
    }

    // MARK: Attempts

    /// Earlier attempts say nothing about the next one.
    private func beginAnew() {
        backoff.reset()
        redirects = 0
    }

    private func plan() {
        phase = .waiting
        driver.schedule(.reconnect, afterMilliseconds: Int(backoff.next(random: driver.random)))
    }

    /// Closes the present connection and begins another one as soon as the backoff allows.
    private func reconnect() {
        end(.waiting)
        plan()
    }

    func timerDidFire(_ timer: WireTimer) {
        switch timer {
        case .reconnect:
            guard phase == .waiting else { return }
            phase = .fetchingToken
            fetchToken()
        case .handshake:
            guard phase == .opening else { return }
            warnOfServer("it did not answer within \(Self.handshakeMilliseconds / 1000) seconds")
            forgetHost()
            reconnect()
        case .stable:
            beginAnew()
        case .keepAlive: keepAlive()
        }
    }

    private func open() {
        attempt += 1
        phase = .opening
        joiner = WireFrameJoiner()
        notifiedToken = nil
        driver.schedule(.handshake, afterMilliseconds: Self.handshakeMilliseconds)
        driver.open(attempt: attempt, host: host, lastSession: lastSession)
    }

    /// The socket is closed.
    func didClose(attempt: Int, reason: String) {
        guard attempt == self.attempt, isOpen else { return }
        driver.log("Disconnected: \(reason)")
        if phase == .opening {
            warnOfServer(reason)
            forgetHost()
        }
        reconnect()
    }

    private func warnOfServer(_ reason: String) {
        guard warnsWhenUnreachable else { return }
        warnsWhenUnreachable = false
        driver.warn("The server cannot be reached: \(reason). Writes and observers wait until it is reachable.")
    }

    private var isOpen: Bool {
        switch phase {
        case .opening, .authenticating, .ready: true
        case .offline, .waiting, .fetchingToken: false
        }
    }

    /// A host that the server named and that cannot be reached is forgotten.
    private func forgetHost() { host = nil }

    /// - Parameter notifiesAtOnce: whether the engine is notified within this call, so that the app's next call finds it
    ///   offline. After an event of the connection it is notified when the event has been processed.
    private func end(_ next: Phase, notifiesAtOnce: Bool = false) {
        for timer in WireTimer.allCases { driver.cancel(timer) }
        if isOpen { driver.close() }
        phase = next
        isAwaitingToken = false
        requests = [:]
        let lost = outbox.connectionDidEnd()
        let wasAnnounced = isAnnounced
        isAnnounced = false
        guard wasAnnounced || !lost.isEmpty else { return }
        let notify = { [self] in
            for fail in lost { fail(WireFailure(WireFailure.disconnected)) }
            if wasAnnounced { delegate?.connectionDidDisconnect() }
        }
        if notifiesAtOnce { notify() } else { driver.enqueue(notify) }
    }

    // MARK: Credentials

    /// Another user is signed in, or none.
    func userDidChange() {
        refusals = 0
        switch phase {
        // The next attempt requests a token anyway.
        case .offline, .waiting: break
        case .fetchingToken: fetchToken()
        case .opening, .authenticating, .ready:
            isAwaitingToken = true
            fetchToken()
        }
    }

    private func fetchToken() {
        tokenRequest += 1
        driver.fetchToken(forcingRefresh: mustRefreshToken, request: tokenRequest)
    }

    /// - Parameter result: nil when nobody is signed in; a failure has the reason why there is no token.
    func tokenDidArrive(_ result: Result<String?, WireFailure>, request: Int) {
        guard request == tokenRequest else { return }
        switch (phase, result) {
        case (.fetchingToken, .success(let token)):
            mustRefreshToken = false
            self.token = token
            open()
        case (.fetchingToken, .failure(let failure)):
            driver.warn("There is no token to connect with: \(failure.message)")
            plan()
        case (.offline, _), (.waiting, _): break
        case (_, .success(let token)):
            mustRefreshToken = false
            isAwaitingToken = false
            self.token = token
            if phase != .opening { authenticate() }
        case (_, .failure(let failure)):
            driver.warn("There is no token of the new user: \(failure.message)")
            reconnect()
        }
    }

    /// Sends the credentials, unless the server has them.
    private func authenticate() {
        guard token != notifiedToken else {
            if phase == .authenticating { becomeReady() }
            return planFlush()
        }
        notifiedToken = token
        let number = number(for: .auth)
        send(token.map { WireRequest.auth(number, token: $0) } ?? WireRequest.unauth(number))
        planFlush()
    }

    func didAuthenticate(_ failure: WireFailure?) {
        if let failure { return credentialDidFail(failure) }
        refusals = 0
        if phase == .authenticating { becomeReady() }
    }

    /// The token is rejected or has expired: reconnect with a new one.
    private func credentialDidFail(_ failure: WireFailure) {
        driver.warn("The server doesn't take the token: \(failure.status) \(failure.message)")
        token = nil
        mustRefreshToken = true
        refusals += 1
        if refusals >= Self.refusalsMax { backoff.growToMax() }
        reconnect()
    }

    // MARK: Messages

    func didReceive(frame: [UInt8], attempt: Int) {
        guard attempt == self.attempt, isOpen else { return }
        switch joiner.take(frame) {
        case .incomplete: break
        case .broken(let why): didClose(attempt: attempt, reason: why)
        case .message(let string):
            do {
                try take(try WireMessage(string))
            } catch {
                didClose(attempt: attempt, reason: "the server's message can't be read: \(error.message)")
            }
        }
    }

    private func take(_ message: WireMessage) throws(TreeDataError) {
        switch message {
        case .handshake(let handshake): greet(handshake)
        case .shutdown(let reason):
            driver.warn("The server ended the connection for good: \(reason)")
            interruptReasons.insert(Self.shutdownReason)
            end(.offline)
        case .redirect(let host):
            self.host = host
            redirects += 1
            // Hosts that name each other would be tried as often as the network allows.
            if redirects <= Self.redirectsMax { backoff.reset() }
            reconnect()
        case .note(let string): driver.log("The server says: \(string)")
        case .reply(let reply): try answer(reply)
        case .data(let node, let path, let tag): delegate?.connectionDidReceive(data: node, at: path, tag: tag)
        case .merge(let members, let path, let tag):
            if !members.isEmpty { delegate?.connectionDidReceive(merge: members, at: path, tag: tag) }
        case .ranges(let ranges, let path, let tag):
            delegate?.connectionDidReceive(ranges: ranges, at: path, tag: tag)
        case .listenRevoked(let path, let query): revoke(path, query)
        case .credentialRevoked(let failure): credentialDidFail(failure)
        case .ignored: break
        }
    }

    private func greet(_ handshake: WireHandshake) {
        guard phase == .opening else { return }
        warnsWhenUnreachable = false
        driver.cancel(.handshake)
        driver.schedule(.stable, afterMilliseconds: Self.stableMilliseconds)
        lastSentMilliseconds = driver.monotonicMilliseconds
        driver.schedule(.keepAlive, afterMilliseconds: Int(Self.keepAliveMilliseconds))
        lastSession = handshake.session
        if let host = handshake.host, !host.isEmpty { self.host = host }
        nextRequest = 1
        let offset = handshake.serverMilliseconds - driver.nowMilliseconds
        onServerTimeOffset?(offset)
        delegate?.connectionDidLearn(serverTimeOffsetMilliseconds: offset)
        phase = .authenticating
        if !isAwaitingToken { authenticate() }
    }

    private func becomeReady() {
        phase = .ready
        isAnnounced = true
        outbox.connectionDidBegin()
        delegate?.connectionDidConnect()
        flush()
    }

    // MARK: Sending

    /// Sends pending requests later, so that no callback runs within the engine's call.
    func planFlush() {
        guard phase == .ready, !isAwaitingToken, !isFlushPlanned else { return }
        isFlushPlanned = true
        driver.enqueue { [self] in
            isFlushPlanned = false
            flush()
        }
    }

    private func flush() {
        guard phase == .ready, !isAwaitingToken else { return }
        while let item = outbox.next() { send(item) }
        // All listens that deferred answers waited for may be removed.
        releaseAnswers()
    }

    func number(for answer: WireAnswer) -> Int {
        defer { nextRequest += 1 }
        requests[nextRequest] = answer
        return nextRequest
    }

    func send(_ string: [UInt8]) {
        lastSentMilliseconds = driver.monotonicMilliseconds
        for frame in WireFrames.frames(of: string) { driver.send(frame: frame) }
    }

    private func keepAlive() {
        guard isOpen else { return }
        let due = lastSentMilliseconds + Self.keepAliveMilliseconds
        if driver.monotonicMilliseconds >= due {
            send(WireRequest.keepAlive)
            driver.schedule(.keepAlive, afterMilliseconds: Int(Self.keepAliveMilliseconds))
        } else {
            driver.schedule(.keepAlive, afterMilliseconds: Int(due - driver.monotonicMilliseconds))
        }
    }
}
