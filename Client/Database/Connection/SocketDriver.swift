import Foundation
import HearthApp
import HearthModel
import HearthHTTPClient
import HearthTransport

/// The I/O of the connection: a socket, the clock, timers, tokens and changes of the network.
///
/// `@unchecked Sendable`: all state belongs to the database's queue. Callbacks from other threads are moved to it.
final class SocketDriver: WireDriver, @unchecked Sendable {
    private let configuration: Repository.Configuration
    private let queue: DispatchQueue
    private let transport: Transport
    private weak var machine: WireConnection?
    private var monitor: NetworkMonitor?
    private var timers: [WireTimer: DispatchWorkItem] = [:]
    private var socket: WebSocketClient?
    private var attempt = 0
    private var isStopped = false

    static let make: Repository.MakeDriver = { (configuration, queue) throws(Status) in
        try SocketDriver(configuration, queue)
    }

    private init(_ configuration: Repository.Configuration, _ queue: DispatchQueue) throws(Status) {
        self.configuration = configuration
        self.queue = queue
        transport = try Transport(name: "hearth-database")
    }

    func start(_ machine: WireConnection) {
        self.machine = machine
        do throws(Status) {
            monitor = try NetworkMonitor(transport: transport) { [weak self] in
                self?.onQueue { $0.machine?.networkDidChange() }
            }
        } catch {
            Log.warning("Changes of the network go unseen: \(error.message)")
        }
        let isFirst = Locked(true)
        configuration.provider.observeUser { [weak self] _ in
            // The listener immediately receives the present user; the connection asks for a token itself.
            let isNews = isFirst.with { first in
                defer { first = false }
                return !first
            }
            if isNews { self?.onQueue { $0.machine?.userDidChange() } }
        }
    }

    func stop() {
        isStopped = true
        configuration.provider.observeUser(nil)
        monitor = nil
        for timer in timers.values { timer.cancel() }
        timers = [:]
        close()
        transport.shutDown()
    }

    private func onQueue(_ work: @escaping @Sendable (SocketDriver) -> Void) {
        queue.async { [weak self] in
            if let self, !isStopped { work(self) }
        }
    }

    // MARK: Time and chance

    var nowMilliseconds: Int64 { Repository.nowMilliseconds }

    var monotonicMilliseconds: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

    var random: Double { Double.random(in: 0..<1) }

    func schedule(_ timer: WireTimer, afterMilliseconds milliseconds: Int) {
        cancel(timer)
        let item = DispatchWorkItem { [weak self] in
            guard let self, !isStopped else { return }
            timers[timer] = nil
            machine?.timerDidFire(timer)
        }
        timers[timer] = item
        queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds), execute: item)
    }

    func cancel(_ timer: WireTimer) { timers.removeValue(forKey: timer)?.cancel() }

    func enqueue(_ work: @escaping () -> Void) {
        let carried = Carried(work)
        queue.async { carried.value() }
    }

    // MARK: Tokens

    func fetchToken(forcingRefresh: Bool, request: Int) {
        Task.detached { [weak self, provider = configuration.provider] in
            let result: Result<String?, WireFailure>
            do {
                result = .success(try await provider.token(forcingRefresh: forcingRefresh)?.token)
            } catch {
                result = .failure(WireFailure("invalid_token", (error as NSError).localizedDescription))
            }
            self?.onQueue { $0.machine?.tokenDidArrive(result, request: request) }
        }
    }

    // MARK: The socket

    func open(attempt: Int, host: String?, lastSession: String?) {
        close()
        self.attempt = attempt
        let address: ServerAddress
        do throws(Status) {
            address = try self.address(host: host)
        } catch {
            let reason = error.message
            return onQueue { $0.machine?.didClose(attempt: attempt, reason: reason) }
        }
        log("Connecting to \(address.string).")
        var options = WebSocketClient.Options()
        options.messageBytesMax = WireLimits.messageBytesMax
        options.compressionThresholdBytes = Self.compressionThresholdBytes
        options.handshakeTimeoutMilliseconds = WireConnection.handshakeMilliseconds
        let pace = ReceivingPace()
        let socket = WebSocketClient(
            transport: transport, address: address, path: target(lastSession: lastSession),
            headers: [HTTPField("user-agent", "Firebase/5/\(Database.version)/linux/hearth")], options: options
        ) { [weak self] event in
            guard let self else { return }
            guard case .string(let frame) = event else { return onQueue { $0.take(event, attempt: attempt) } }
            pace.received(frame.count)
            onQueue {
                $0.take(event, attempt: attempt)
                pace.taken()
            }
        }
        pace.attach { [weak socket] in socket?.setReceiving($0) }
        self.socket = socket
    }

    /// The minimum size of a message that is compressed.
    private static let compressionThresholdBytes = 1 << 10

    private func target(lastSession: String?) -> String {
        let session = lastSession.map { "&ls=\(Self.encoded($0))" } ?? ""
        return "/.ws?v=5&ns=\(Self.encoded(configuration.location.namespace))\(session)"
    }

    private static func encoded(_ string: String) -> String {
        string.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(CharacterSet(charactersIn: "-_.~")))
            ?? ""
    }

    /// - Parameter host: a host that the server named, with or without port.
    private func address(host: String?) throws(Status) -> ServerAddress {
        var location = configuration.location
        if let host {
            let named = try DatabaseLocation((location.isSecure ? "https://" : "http://") + host)
            location.host = named.host
            location.port = named.port ?? (location.isSecure ? nil : 80)
        }
        let bare = location.host.hasPrefix("[") ? String(location.host.dropFirst().dropLast()) : location.host
        // A proxy cannot reach loopback addresses.
        let isLoopback = bare == "localhost" || bare == "::1" || bare.hasPrefix("127.")
        return ServerAddress(
            host: bare, port: location.port ?? 443,
            security: location.isSecure ? .tls(configuration.tls.options) : .plaintext,
            proxy: isLoopback ? .none : .environment, connectTimeoutMilliseconds: WireConnection.handshakeMilliseconds)
    }

    private func take(_ event: WebSocketClient.Event, attempt: Int) {
        // An earlier message may have closed it.
        guard attempt == self.attempt, socket != nil else { return }
        switch event {
        case .opened, .drained, .binary: break
        case .string(let frame): machine?.didReceive(frame: frame, attempt: attempt)
        case .closed(let end):
            close()
            machine?.didClose(attempt: attempt, reason: Self.string(of: end))
        }
    }

    private static func string(of end: WebSocketClient.End) -> String {
        switch end {
        case .byPeer(let code, let reason):
            "the server closed (\(code.map { "\($0.rawValue)" } ?? "no code")) \(reason)"
        case .refused(let status, let why): "the server answered \(status): \(why.message)"
        case .failed(let status): status.message
        }
    }

    func send(frame: [UInt8]) { socket?.send(string: frame) }

    func close() {
        socket?.close()
        socket = nil
    }

    // MARK: Log

    func log(_ message: String) { Log.debug("\(configuration.location.namespace): \(message)") }

    func warn(_ message: String) { Log.warning("\(configuration.location.namespace): \(message)") }
}
