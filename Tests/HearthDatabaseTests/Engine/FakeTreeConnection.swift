import HearthModel
import HearthTree

@testable import HearthDatabase

/// The engine's connection to a `FakeTreeServer`. A test delivers the messages in both directions.
final class FakeTreeConnection: DatabaseConnection {
    final class Listen {
        let id: Int
        let path: TreePath
        let query: TreeQuery?
        let tag: Int?
        let hash: () -> ListenHash
        let done: (WireFailure?) -> Void
        /// Whether its data, or the confirmation of it, has arrived in the present session.
        var isAnswered = false
        /// The server's version whose data the client has; nil before the first data.
        var version: Int?

        init(
            _ id: Int, _ path: TreePath, _ query: TreeQuery?, _ tag: Int?, _ hash: @escaping () -> ListenHash,
            _ done: @escaping (WireFailure?) -> Void
        ) {
            self.id = id
            self.path = path
            self.query = query
            self.tag = tag
            self.hash = hash
            self.done = done
        }
    }

    private final class Write {
        let changes: [TreeChange]
        let hash: String?
        let done: (WireFailure?) -> Void
        var isSent = false

        init(_ changes: [TreeChange], _ hash: String?, _ done: @escaping (WireFailure?) -> Void) {
            self.changes = changes
            self.hash = hash
            self.done = done
        }
    }

    let server: FakeTreeServer
    weak var delegate: (any DatabaseConnectionDelegate)?
    private(set) var listens: [Listen] = []
    private var writes: [(id: Int, write: Write)] = []
    private var gets: [(id: Int, path: TreePath, query: TreeQuery?, done: (Result<Node, WireFailure>) -> Void)] = []
    private var session: FakeTreeSession?
    /// Messages that the server did not receive yet.
    private var requests: [(FakeTreeSession) -> Void] = []
    private var lastID = 0
    /// The engine's requests, for tests that check them.
    var log: [String] = []
    private(set) var offlineReasons: Set<String> = []

    init(_ server: FakeTreeServer) { self.server = server }

    var isConnected: Bool { session != nil }
    var hasWork: Bool { !requests.isEmpty || !(session?.messages.isEmpty ?? true) }
    /// Some listens have the data of a commit and others do not.
    var isAmongMessagesOfOneVersion = false
    var outstandingWrites: Int { writes.count }

    private func nextID() -> Int {
        lastID += 1
        return lastID
    }

    // MARK: The test's side

    func connect() {
        guard session == nil else { return }
        let session = FakeTreeSession(server)
        self.session = session
        server.open(session)
        delegate?.connectionDidLearn(serverTimeOffsetMilliseconds: 0)
        delegate?.connectionDidConnect()
        for listen in listens { send(listen) }
        for (id, write) in writes { send(id, write) }
        for get in gets { send(get.id) }
    }

    /// - Parameter arriving: the number of pending messages that still reach the server.
    func disconnect(arriving: Int = 0) {
        guard let session else { return }
        for request in requests.prefix(arriving) { request(session) }
        requests = []
        self.session = nil
        // The rest of that version does not arrive any more.
        if isAmongMessagesOfOneVersion { for listen in listens { listen.version = nil } }
        isAmongMessagesOfOneVersion = false
        server.close(session)
        for listen in listens { listen.isAnswered = false }
        let lost = writes.filter { $0.write.hash != nil && $0.write.isSent }
        writes.removeAll { entry in lost.contains { $0.id == entry.id } }
        let lostGets = gets
        gets = []
        delegate?.connectionDidDisconnect()
        for (_, write) in lost { write.done(WireFailure("disconnect")) }
        for get in lostGets { get.done(.failure(WireFailure("disconnect"))) }
    }

    func stepServer() {
        guard let session, !requests.isEmpty else { return }
        requests.removeFirst()(session)
    }

    func stepClient() {
        guard let message = session?.next() else { return }
        message.deliver(self)
        isAmongMessagesOfOneVersion = session?.messages.first?.version == message.version
        for listen in listens where listen.isAnswered { listen.version = message.version }
    }

    func run() {
        while hasWork {
            while !requests.isEmpty { stepServer() }
            stepClient()
        }
    }

    // MARK: From the server

    /// A listen without an answer does not have the data of a single version any more.
    private func unsettle(_ path: TreePath, _ tag: Int?) {
        for listen in listens where !listen.isAnswered && listen.tag == tag {
            if listen.path.contains(path) || path.contains(listen.path) { listen.version = nil }
        }
    }

    func received(_ node: Node, at path: TreePath, tag: Int?) {
        unsettle(path, tag)
        delegate?.connectionDidReceive(data: node, at: path, tag: tag)
    }

    func received(merge members: [(path: TreePath, node: Node)], at path: TreePath, tag: Int?) {
        unsettle(path, tag)
        delegate?.connectionDidReceive(merge: members, at: path, tag: tag)
    }

    func received(ranges: [ListenRange], at path: TreePath, tag: Int?) {
        unsettle(path, tag)
        log.append("ranges \(path) \(ranges.count)")
        delegate?.connectionDidReceive(ranges: ranges, at: path, tag: tag)
    }

    func unlistened(_ path: TreePath, _ query: TreeQuery?) {
        delegate?.connectionDidUnlisten(at: path, query: query)
    }

    func answered(_ id: Int) {
        guard let listen = listens.first(where: { $0.id == id }) else { return }
        listen.isAnswered = true
        listen.done(nil)
    }

    func refused(_ id: Int, _ failure: WireFailure) {
        guard let listen = listens.first(where: { $0.id == id }) else { return }
        listens.removeAll { $0.id == id }
        listen.done(failure)
    }

    func revoke(_ path: TreePath, _ query: TreeQuery?) {
        listens.removeAll { $0.path == path && $0.query == query }
        session?.listens.removeAll { $0.path == path && $0.query == query }
        delegate?.connectionDidRevoke(
            listenAt: path, query: query, failure: WireFailure("permission_denied", "Permission denied"))
    }

    // MARK: The engine's side

    func listen(
        at path: TreePath, query: TreeQuery?, tag: Int?, hash: @escaping () -> ListenHash,
        done: @escaping (WireFailure?) -> Void
    ) {
        log.append("listen \(path)\(query == nil ? "" : "?")")
        precondition((query == nil) == (tag == nil))
        precondition(!listens.contains { $0.path == path && $0.query == query }, "listened to twice: \(path)")
        let listen = Listen(nextID(), path, query, tag, hash, done)
        listens.append(listen)
        if isConnected { send(listen) }
    }

    private func send(_ listen: Listen) {
        let (id, path, query, tag, hash) = (listen.id, listen.path, listen.query, listen.tag, listen.hash())
        requests.append { $0.listen(path, query, tag, hash: hash, listen: id) }
    }

    func unlisten(at path: TreePath, query: TreeQuery?, tag: Int?) {
        log.append("unlisten \(path)\(query == nil ? "" : "?")")
        precondition(listens.contains { $0.path == path && $0.tag == tag }, "not listened to: \(path)")
        listens.removeAll { $0.path == path && $0.tag == tag }
        if isConnected { requests.append { $0.unlisten(path, query, tag) } }
    }

    func put(at path: TreePath, _ node: Node, hash: String?, done: @escaping (WireFailure?) -> Void) {
        log.append("put \(path)\(hash == nil ? "" : "#")")
        add(Write([TreeChange(path: path, node: node)], hash, done))
    }

    func merge(at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void) {
        log.append("merge \(path)")
        add(Write(members.map { TreeChange(path: path + $0.path, node: $0.node) }, nil, done))
    }

    private func add(_ write: Write) {
        let id = nextID()
        writes.append((id, write))
        if isConnected { send(id, write) }
    }

    private func send(_ id: Int, _ write: Write) {
        write.isSent = true
        requests.append { [unowned self] session in
            // Cancelled before it was sent.
            guard writes.contains(where: { $0.id == id }) else { return }
            let failure = session.server.write(write.changes, hash: write.hash)
            session.send { connection in
                guard connection.writes.contains(where: { $0.id == id }) else { return }
                connection.writes.removeAll { $0.id == id }
                write.done(failure)
            }
        }
    }

    func get(at path: TreePath, query: TreeQuery?, done: @escaping (Result<Node, WireFailure>) -> Void) -> Int {
        log.append("get \(path)")
        let id = nextID()
        gets.append((id, path, query, done))
        if isConnected { send(id) }
        return id
    }

    private func send(_ id: Int) {
        guard let get = gets.first(where: { $0.id == id }) else { return }
        requests.append { session in
            let node = session.server.tree.node(at: get.path)
            let data = get.query.map { $0.result(of: node) } ?? node
            let isRefused = session.server.refusesReading(get.path)
            session.send { connection in
                guard connection.gets.contains(where: { $0.id == id }) else { return }
                connection.gets.removeAll { $0.id == id }
                get.done(
                    isRefused ? .failure(WireFailure("permission_denied", "Permission denied")) : .success(data))
            }
        }
    }

    func cancelGet(_ id: Int) { gets.removeAll { $0.id == id } }

    func onDisconnectPut(at path: TreePath, _ node: Node, done: @escaping (WireFailure?) -> Void) {
        onDisconnectMerge(at: path, [(.root, node)], done: done)
    }

    func onDisconnectMerge(
        at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void
    ) {
        requests.append { session in
            session.onDisconnect += members.map { (path + $0.path, $0.node) }
            session.send { _ in done(nil) }
        }
    }

    func onDisconnectCancel(at path: TreePath, done: @escaping (WireFailure?) -> Void) {
        requests.append { session in
            session.onDisconnect.removeAll { path.contains($0.path) }
            session.send { _ in done(nil) }
        }
    }

    func goOnline(reason: String) { offlineReasons.remove(reason) }
    func goOffline(reason: String) { offlineReasons.insert(reason) }

    func purgeOutstandingWrites() {
        let purged = writes
        writes = []
        for (_, write) in purged { write.done(.cancelled) }
    }

    func giveUp(_ failure: WireFailure) {
        let (lostWrites, lostGets) = (writes, gets)
        (writes, gets, listens, requests) = ([], [], [], [])
        for (_, write) in lostWrites { write.done(failure) }
        for lost in lostGets { lost.done(.failure(failure)) }
    }
}
