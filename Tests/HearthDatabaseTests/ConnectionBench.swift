import HearthTree
import Testing

@testable import HearthDatabase

/// Simulates socket, clock and tokens for the connection's state machine, and records the events in order.
final class ConnectionBench: WireDriver {
    private(set) var machine: WireConnection!
    /// The recorded events: `open`, `close`, requests in short, and the calls of the engine.
    var log: [String] = []
    var nowMilliseconds: Int64 = 1_000_000
    var monotonicMilliseconds: Int64 = 5_000
    var random = 1.0
    var timers: [WireTimer: Int] = [:]
    private var queue: [() -> Void] = []
    private(set) var attempt = 0
    /// The requests by number, on the present connection.
    private(set) var sent: [(number: Int, action: String, body: JSONValue)] = []
    private var tokenRequests: [Int] = []
    private(set) var isForcing = false
    private let listener = Delegate()

    /// The engine.
    private final class Delegate: DatabaseConnectionDelegate {
        var log: (String) -> Void = { _ in }
        func connectionDidConnect() { log("connected") }
        func connectionDidDisconnect() { log("disconnected") }
        func connectionDidLearn(serverTimeOffsetMilliseconds offset: Int64) { log("offset \(offset)") }
        func connectionDidReceive(data node: Node, at path: TreePath, tag: Int?) {
            log("data \(path) \(tag.map { "#\($0)" } ?? "")")
        }
        func connectionDidReceive(merge members: [(path: TreePath, node: Node)], at path: TreePath, tag: Int?) {
            log("merge \(path) \(members.map(\.path.string))")
        }
        func connectionDidReceive(ranges: [ListenRange], at path: TreePath, tag: Int?) { log("ranges \(path)") }
        func connectionDidUnlisten(at path: TreePath, query: TreeQuery?) {
            log("ended \(path)\(query == nil ? "" : " filtered")")
        }
        func connectionDidRevoke(listenAt path: TreePath, query: TreeQuery?, failure: WireFailure) {
            log("revoked \(path)\(query == nil ? "" : " filtered") \(failure.status)")
        }
    }

    init(interruptReasons: Set<String> = []) {
        machine = WireConnection(driver: self, interruptReasons: interruptReasons)
        listener.log = { [unowned self] in log.append($0) }
        machine.delegate = listener
    }

    // MARK: The machine's world

    func start(_ machine: WireConnection) {}
    func stop() {}

    func open(attempt: Int, host: String?, lastSession: String?) {
        self.attempt = attempt
        sent = []
        log.append("open \(host ?? "-") \(lastSession ?? "-")")
    }

    func send(frame: [UInt8]) {
        let string = String(decoding: frame, as: UTF8.self)
        guard let message = try? TreeJSON.value(frame)["d"], let number = message["r"]?.integer,
            let action = message["a"]?.string
        else {
            log.append("send \(string)")
            return
        }
        let body = message["b"] ?? .null
        sent.append((Int(number), action, body))
        log.append("\(action) \(body["p"]?.string ?? body["cred"]?.string ?? "")")
    }

    func close() { log.append("close") }
    func fetchToken(forcingRefresh: Bool, request: Int) {
        isForcing = forcingRefresh
        tokenRequests.append(request)
    }
    func schedule(_ timer: WireTimer, afterMilliseconds milliseconds: Int) { timers[timer] = milliseconds }
    func cancel(_ timer: WireTimer) { timers[timer] = nil }
    func enqueue(_ work: @escaping () -> Void) { queue.append(work) }
    func log(_ message: String) {}
    func warn(_ message: String) { log.append("warning") }

    // MARK: The test's hand

    /// Runs the queued jobs.
    func settle() {
        while !queue.isEmpty { queue.removeFirst()() }
    }

    func fire(_ timer: WireTimer) {
        #expect(timers[timer] != nil, "\(timer) isn't set")
        timers[timer] = nil
        machine.timerDidFire(timer)
        settle()
    }

    /// Answers the last request for a token.
    func answerToken(_ token: String?) {
        guard let request = tokenRequests.last else {
            Issue.record("no token is requested")
            return
        }
        tokenRequests = []
        machine.tokenDidArrive(.success(token), request: request)
        settle()
    }

    func failToken() {
        guard let request = tokenRequests.last else {
            Issue.record("no token is requested")
            return
        }
        tokenRequests = []
        machine.tokenDidArrive(.failure(WireFailure("invalid_token", "no network")), request: request)
        settle()
    }

    var asksForToken: Bool { !tokenRequests.isEmpty }

    func say(_ string: String) {
        machine.didReceive(frame: Array(string.utf8), attempt: attempt)
        settle()
    }

    func greet(host: String = "h:1", session: String = "s1") {
        say(#"{"t":"c","d":{"t":"h","d":{"ts":1000500,"v":"5","h":"\#(host)","s":"\#(session)"}}}"#)
    }

    /// Answers the oldest unanswered request of a kind.
    func reply(_ action: String, _ status: String = "ok", data: String = "\"\"") {
        guard let index = sent.firstIndex(where: { $0.action == action }) else {
            Issue.record("no request \(action) in \(sent.map(\.action))")
            return
        }
        let number = sent.remove(at: index).number
        say(#"{"t":"d","d":{"r":\#(number),"b":{"s":"\#(status)","d":\#(data)}}}"#)
    }

    func lose() {
        machine.didClose(attempt: attempt, reason: "lost")
        settle()
    }

    /// From the scheduled attempt to the handshake.
    func connect(token: String? = nil) {
        fire(.reconnect)
        answerToken(token)
        greet()
        if token != nil { reply("auth") }
    }

    /// The events recorded since the last call.
    func took() -> [String] {
        defer { log = [] }
        return log
    }

    func done(_ name: String) -> (WireFailure?) -> Void {
        { [unowned self] in log.append("\(name) \($0?.status ?? "ok")") }
    }

    func listen(_ path: TreePath, _ query: TreeQuery? = nil, tag: Int? = nil, hash: String = "") {
        machine.listen(
            at: path, query: query, tag: tag, hash: { ListenHash(simple: hash) }, done: done("listened \(path)"))
    }
}

/// A node by its JSON.
func tree(_ json: String) -> Node {
    do {
        return try TreeJSON.node(Array(json.utf8))
    } catch {
        fatalError("\(json): \(error)")
    }
}
