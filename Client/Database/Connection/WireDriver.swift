/// The I/O that the connection's state machine needs. All results are delivered on the engine's queue, and never
/// within the call.
protocol WireDriver: AnyObject {
    /// Starts to notify the machine of changes of the user and of the network path, and to serve it.
    func start(_ machine: WireConnection)
    /// Stops all callbacks.
    func stop()

    /// Milliseconds since 1970.
    var nowMilliseconds: Int64 { get }
    /// By a monotonic clock.
    var monotonicMilliseconds: Int64 { get }
    /// At least 0, below 1.
    var random: Double { get }

    /// Begins to connect; all callbacks of this connection carry `attempt`. Any other connection is closed by then.
    /// - Parameters:
    ///   - host: overrides the configured one, with or without port.
    ///   - lastSession: the session of the connection before.
    func open(attempt: Int, host: String?, lastSession: String?)
    /// Sends one text frame over the connection that was opened last.
    func send(frame: [UInt8])
    func close()

    /// Answers with `tokenDidArrive(_:request:)`.
    func fetchToken(forcingRefresh: Bool, request: Int)

    /// Calls `timerDidFire(_:)`. There is one timer of each kind, and a new time replaces the former one.
    func schedule(_ timer: WireTimer, afterMilliseconds: Int)
    func cancel(_ timer: WireTimer)

    /// Runs the work on the engine's queue, after all work that is queued.
    func enqueue(_ work: @escaping () -> Void)

    func log(_ message: String)
    func warn(_ message: String)
}

enum WireTimer: Hashable, CaseIterable {
    /// The next attempt to connect is due.
    case reconnect
    /// The server did not send its handshake in time.
    case handshake
    /// The connection has lasted long enough to reset the backoff.
    case stable
    case keepAlive
}
