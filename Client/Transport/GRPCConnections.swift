import CCurl
import HearthHTTPClient
import HearthModel

/// Assigns a channel's calls to connections.
///
/// libcurl's own assignment is unsuitable for several reasons. Without TLS it uses HTTP/2 from the first byte only with
/// "prior knowledge"; with that option libcurl 7.88 fails on every connection that it reuses. With the option "HTTP/2"
/// it reuses connections, but silently begins a new connection in HTTP/1.1. When a reused connection breaks, it sends a
/// request again automatically, even if the server may have processed it. And a stream whose consumer pauses blocks all
/// others of its connection.
///
/// Therefore, in a pool of the channel's own, an attempt of a call is either an *opener*, which always uses a new
/// connection, or a *follower*, which always uses an existing one. When a follower tries to connect, the socket
/// callback fails before any byte is sent, and its call begins again as an opener. While the first opener connects,
/// calls wait. A second connection of libcurl for the same attempt also fails, so that this type decides about sending
/// again. Each stream has its own pool, and so its own connection.
///
/// Used on the loop's thread.
final class GRPCConnections {
    enum Role { case opener, follower }

    let loop: TransportLoop
    let address: ServerAddress
    let keepAlive: KeepAlive
    private let connectionsMax: Int
    private var pool: ConnectionPool?
    /// Running calls on the shared pool.
    private var calls: [ObjectIdentifier: GRPCUnaryCall] = [:]
    private var isFlushScheduled = false
    private var openers: Set<ObjectIdentifier> = []
    /// Whether an opener has connected since a follower last found no free connection.
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

    /// The channel is released: after the last call the connections are closed.
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

    /// Begins an attempt of the call, immediately or when a connection is available.
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

    /// The opener is connected: followers can start.
    func openerIsReady(_ call: GRPCUnaryCall) {
        guard openers.remove(ObjectIdentifier(call)) != nil else { return }
        hasCapacity = true
        beginWaiting()
    }

    /// The follower found no connection with capacity. It begins again.
    func followerWasRefused(_ call: GRPCUnaryCall) {
        calls[ObjectIdentifier(call)] = nil
        hasCapacity = false
        begin(call)
    }

    /// The attempt has ended, successfully or not.
    /// - Parameters:
    ///   - wasReset: the call was cancelled while it ran.
    ///   - connectFailure: the reason why the opener's connection could not be made; waiting calls fail with it, too.
    func attemptEnded(_ call: GRPCUnaryCall, wasReset: Bool, connectFailure: Status?) {
        if wasReset { flushResetsSoon() }
        calls[ObjectIdentifier(call)] = nil
        let wasOpening = openers.remove(ObjectIdentifier(call)) != nil
        if wasOpening, let connectFailure {
            let failed = waiting
            waiting = []
            for call in failed { call.abort(connectFailure) }
        } else if let first = waiting.first, openers.isEmpty {
            // The ended attempt may have freed capacity.
            waiting.removeFirst()
            hasCapacity = !wasOpening
            begin(first)
        }
        closeIfRetired()
    }

    /// Runs once for all resets of a tick; see `Transfer.forbidReuse`.
    private func flushResetsSoon() {
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        _ = loop.schedule(afterMilliseconds: 0) { [self] in
            isFlushScheduled = false
            for call in calls.values { call.nudge() }
        }
    }

    /// Removes the call from the waiting calls.
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
        // A proxy must tunnel HTTP/2.
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

    /// The status of an attempt that libcurl rejected.
    func status(_ transfer: Transfer, _ code: CURLcode, isReady: Bool) -> Status {
        let message = transfer.errorMessage(code)
        guard code == CURLE_HTTP2, isReady else {
            return CurlFailure.status(code, message, peer: address.string)
        }
        return .unavailable("\(address.string): the connection broke, or the server does not speak HTTP/2: \(message)")
    }
}
