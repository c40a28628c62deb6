import CCurl
import HearthModel

/// Which connection a channel's calls go over.
///
/// libcurl alone would be wrong in several ways. Without TLS it speaks HTTP/2 at once only when told so ("prior
/// knowledge"), but then (in 7.88) fails on every connection that it reuses; told "HTTP/2", it reuses well, but begins
/// a new connection in HTTP/1.1, silently. It sends a request again by itself when a reused connection broke, also when
/// the server may have processed it. And a stream whose consumer pauses holds up all others of its connection.
///
/// So, in a pool of the channel's own, an attempt of a call is either an *opener*, which gets a new connection and never
/// an old one, or a *follower*, which gets an old one and never a new one: a follower that wants to connect is refused
/// the socket before anything is sent, and its call begins again as an opener. While the first opener connects, calls
/// wait. A second connection of libcurl's for the same attempt is refused, too, so that sending again is decided here.
/// Streams have a pool, and with it a connection, each.
///
/// On the loop's thread.
final class GRPCConnections {
    enum Role { case opener, follower }

    let loop: TransportLoop
    let address: ServerAddress
    let keepAlive: KeepAlive
    private let connectionsMax: Int
    private var pool: ConnectionPool?
    /// Calls under way on the shared pool.
    private var calls: [ObjectIdentifier: GRPCUnaryCall] = [:]
    private var isFlushScheduled = false
    private var openers: Set<ObjectIdentifier> = []
    /// An opener was ready since a follower last found no room.
    private var hasCapacity = false
    private var waiting: [GRPCUnaryCall] = []
    private var isRetired = false

    init(loop: TransportLoop, address: ServerAddress, connectionsMax: Int, keepAlive: KeepAlive) {
        self.keepAlive = keepAlive
        self.loop = loop
        self.address = address
        self.connectionsMax = connectionsMax
    }

    func sharedPool() throws(Status) -> ConnectionPool {
        if let pool { return pool }
        let made = try loop.makePool()
        pool = made
        return made
    }

    /// The channel is gone: after the last call the connections are of no use.
    func retire() {
        isRetired = true
        closeIfRetired()
    }

    private func closeIfRetired() {
        guard isRetired, calls.isEmpty, waiting.isEmpty, let pool else { return }
        self.pool = nil
        hasCapacity = false
        loop.close(pool)
    }

    // MARK: Calls on shared connections

    /// Begins an attempt of the call, now or when there is a connection.
    func begin(_ call: GRPCUnaryCall) {
        if hasCapacity {
            start(call, .follower)
        } else if openers.isEmpty, (pool?.socketCount ?? 0) < connectionsMax || calls.isEmpty {
            openers.insert(ObjectIdentifier(call))
            start(call, .opener)
        } else {
            waiting.append(call)
        }
    }

    private func start(_ call: GRPCUnaryCall, _ role: Role) {
        calls[ObjectIdentifier(call)] = call
        call.startAttempt(role)
    }

    /// The opener's connection stands: others can follow.
    func openerIsReady(_ call: GRPCUnaryCall) {
        guard openers.remove(ObjectIdentifier(call)) != nil else { return }
        hasCapacity = true
        beginWaiting()
    }

    /// The follower found no connection with room. It begins again.
    func followerWasRefused(_ call: GRPCUnaryCall) {
        calls[ObjectIdentifier(call)] = nil
        hasCapacity = false
        begin(call)
    }

    /// The attempt has ended, well or badly.
    /// - Parameters:
    ///   - wasReset: the call was given up while it ran.
    ///   - connectFailure: why the opener's connection could not be made; those that wait for it fail alike.
    func attemptEnded(_ call: GRPCUnaryCall, wasReset: Bool, connectFailure: Status?) {
        if wasReset { flushResetsSoon() }
        calls[ObjectIdentifier(call)] = nil
        let wasOpening = openers.remove(ObjectIdentifier(call)) != nil
        if wasOpening, let connectFailure {
            let failed = waiting
            waiting = []
            for call in failed { call.abort(connectFailure) }
        } else if let first = waiting.first, openers.isEmpty {
            // There may be room now where there was none.
            waiting.removeFirst()
            hasCapacity = !wasOpening
            begin(first)
        }
        closeIfRetired()
    }

    /// Once for all resets of a turn; see `Transfer.forbidReuse`.
    private func flushResetsSoon() {
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        _ = loop.schedule(afterMilliseconds: 0) { [self] in
            isFlushScheduled = false
            for call in calls.values { call.nudge() }
        }
    }

    /// The call doesn't wait any longer.
    func forget(_ call: GRPCUnaryCall) { waiting.removeAll { $0 === call } }

    private func beginWaiting() {
        let begun = waiting
        waiting = []
        for call in begun { begin(call) }
    }

    // MARK: Set-up of every attempt

    func prepare(_ transfer: Transfer, path: String, headers: [String], opensConnection: Bool) throws(Status) {
        transfer.set(CURLOPT_URL, address.url + path)
        transfer.set(CURLOPT_POST, 1)
        try transfer.setHeaders(headers)
        transfer.setConnection(
            address.security, address.proxy, connectTimeoutMilliseconds: address.connectTimeoutMilliseconds)
        // A proxy must not look into HTTP/2.
        transfer.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        if opensConnection { transfer.set(CURLOPT_FRESH_CONNECT, 1) }
        let version: Int
        if address.isSecure {
            version = Int(CURL_HTTP_VERSION_2TLS)
        } else if opensConnection {
            version = Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
        } else {
            version = Int(CURL_HTTP_VERSION_2_0)
        }
        transfer.set(CURLOPT_HTTP_VERSION, version)
    }

    /// The status of an attempt that libcurl gave up.
    func status(_ transfer: Transfer, _ code: CURLcode, isReady: Bool) -> Status {
        let message = transfer.errorMessage(code)
        guard code == CURLE_HTTP2, isReady else {
            return CurlFailure.status(code, message, peer: address.string)
        }
        return .unavailable("\(address.string): the connection broke, or the server does not speak HTTP/2: \(message)")
    }
}
