/// What the connection's state machine wants of the world. Everything that comes of it comes back on the engine's queue, and
/// never within the call.
protocol WireDriver: AnyObject {
    /// From now on it tells the machine when the user or the way to the network changes, and does what the machine wants.
    func start(_ machine: WireConnection)
    /// Nothing comes any more.
    func stop()

    /// Milliseconds since 1970.
    var nowMilliseconds: Int64 { get }
    /// Of a clock that nobody sets.
    var monotonicMilliseconds: Int64 { get }
    /// At least 0, below 1.
    var random: Double { get }

    /// Begins to connect; `attempt` comes back with all that comes of it. Another connection is closed by then.
    /// - Parameters:
    ///   - host: to use instead of the configured one, with or without port.
    ///   - lastSession: of the connection before.
    func open(attempt: Int, host: String?, lastSession: String?)
    /// One text frame to the connection that was opened last.
    func send(frame: [UInt8])
    func close()

    /// Answers with `tokenDidArrive(_:request:)`.
    func fetchToken(forcingRefresh: Bool, request: Int)

    /// Answers with `timerDidFire(_:)`; there is one of each kind, and another time replaces the first.
    func schedule(_ timer: WireTimer, afterMilliseconds: Int)
    func cancel(_ timer: WireTimer)

    /// Runs it on the engine's queue, after all that is there already.
    func enqueue(_ work: @escaping () -> Void)

    func log(_ message: String)
    func warn(_ message: String)
}

enum WireTimer: Hashable, CaseIterable {
    /// The time of the next attempt to connect has come.
    case reconnect
    /// The server should have greeted by now.
    case handshake
    /// The connection has lasted long enough to be called good.
    case stable
    case keepAlive
}
