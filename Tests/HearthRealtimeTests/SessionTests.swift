import HearthModel
import HearthNetwork
import HearthRules
import HearthStorage
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#endif

@testable import HearthServer

/// A client's end of a session without a socket.
private final class Line: RealtimeCarrier, @unchecked Sendable {
    // Belongs to the loop.
    let loop: EventLoop
    let peer: RealtimePeer
    var queuedBytes = 0
    var sent: [String] = []
    var fault: RealtimeFault?
    var isPaused = false

    init(_ loop: EventLoop, connection: UInt64) {
        self.loop = loop
        peer = RealtimePeer(address: "192.0.2.1:\(connection)", connection: connection)
    }

    func send(_ message: [UInt8]) { sent.append(String(decoding: message, as: UTF8.self)) }
    func send(_ message: LargeMessage) {
        large.append(message)
        do {
            send(message.head + (try message.body.file.read(0..<message.body.file.count)) + message.tail)
        } catch {
            sent.append("\(error)")
        }
    }

    func send(_ push: RealtimePush, tag: Int64?) -> Bool {
        if queuedBytes > Limits.realtimeQueueBytesMax { return false }
        send(push.message(tag: tag))
        return true
    }

    var hasLarge = false
    var large: [LargeMessage] = []
    func belongs(to requester: Requester) {}
    func pauseReading() { isPaused = true }
    func resumeReading() { isPaused = false }
    func end(_ fault: RealtimeFault) { self.fault = fault }
}

/// A service with one namespace and a loop.
private final class Site {
    let service: RealtimeService
    let namespace: RealtimeNamespace
    let loop: EventLoop
    let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 2)

    init(_ memory: ServerMemory = ServerMemory()) throws {
        loop = try EventLoop()
        try loop.start()
        service = try RealtimeService(
            RealtimeService.Configuration(), provider: MemoryStoreProvider(),
            authenticator: Authenticator(isEmulator: true, IdentityConfiguration()), pool: pool, memory: memory)
        namespace = try service.namespace("n")
    }

    func on<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value {
        let result = Mutex<Value?>(nil)
        loop.execute {
            let value = body()
            result.withLock { $0 = value }
        }
        while true {
            if let value = result.withLock({ $0 }) { return value }
            sched_yield()
        }
    }

    func open(connection: UInt64 = 1) -> Client {
        let line = Line(loop, connection: connection)
        let made = on { [namespace, service] in
            LoopBound(RealtimeSession(line, host: "localhost:9000", namespace, service))
        }
        return Client(site: self, line: line, session: made.value)
    }

    func write(_ path: TreePath, _ node: Node) {
        let isDone = Mutex(false)
        namespace.database.submit(
            TreeWrite(changes: [TreeChange(path: path, node: node)], nowMilliseconds: 0)
        ) { _ in isDone.withLock { $0 = true } }
        while !isDone.withLock({ $0 }) { sched_yield() }
    }

    /// Keeps the writer from everything else until the end of `body`.
    func withBusyWriter(_ body: () throws -> Void) rethrows {
        let isOver = Mutex(false)
        namespace.database.perform { _ in while !isOver.withLock({ $0 }) { sched_yield() } }
        defer { isOver.withLock { $0 = true } }
        try body()
    }

    var queuedWrites: Int { namespace.database.statistics.queuedWrites }

    func close() {
        loop.stopAndJoin()
        pool.stop()
        service.close()
    }
}

private struct Client {
    let site: Site
    let line: Line
    let session: RealtimeSession

    func say(_ texts: String...) {
        site.loop.execute { [session] in for text in texts { session.receive(Array(text.utf8)) } }
    }

    func request(_ number: Int, _ action: String, _ body: String) {
        say(#"{"t":"d","d":{"r":\#(number),"a":"\#(action)","b":\#(body)}}"#)
    }

    /// Takes what was sent, once there are so many.
    func take(_ count: Int) -> [String] {
        for _ in 0..<2_000_000 {
            let taken: [String]? = site.on { [line] in
                if line.sent.count < count { return nil }
                defer { line.sent = [] }
                return line.sent
            }
            if let taken { return taken }
        }
        return site.on { [line] in line.sent + ["(nothing more came)"] }
    }

    var sent: [String] { site.on { [line] in line.sent } }
    var isPaused: Bool { site.on { [line] in line.isPaused } }
    var fault: RealtimeFault? { site.on { [line] in LoopBound(line.fault) }.value }

    /// Reads nothing more.
    func fill() { site.on { [line] in line.queuedBytes = Limits.realtimeQueueBytesMax + 1 } }

    func drain() {
        site.on { [line, session] in
            line.queuedBytes = 0
            session.becameWritable()
        }
    }

    func end() { site.on { [session] in session.carrierEnded() } }
}

@Suite struct SessionTests {
    private let ok = #""b":{"s":"ok","d":""}}}"#

    /// Specification §10.6.
    @Test func theExampleSession() throws {
        let site = try Site()
        defer { site.close() }
        site.namespace.setRules(
            try TreeRuleset.compile(
                Array(#"{"rules":{".read":true,"admin":{".write":false},"$other":{".write":true}}}"#.utf8)))
        site.write("counter", 10)
        site.write(
            "scores", inner(["ann": inner(["points": 7]), "bob": inner(["points": 9]), "abe": inner(["points": 1])]))
        let client = site.open()
        defer { client.end() }
        let handshake = client.take(1)[0]
        #expect(handshake.hasPrefix(#"{"t":"c","d":{"t":"h","d":{"ts":"#))
        #expect(handshake.contains(#","v":"5","h":"localhost:9000","s":""#))
        client.say(
            #"{"t":"d","d":{"r":1,"a":"s","b":{"c":{"sdk.js.11-0-0":1}}}}"#,
            #"{"t":"d","d":{"r":2,"a":"q","b":{"p":"/counter","h":""}}}"#)
        #expect(
            client.take(3) == [
                #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":""}}}"#,
                #"{"t":"d","d":{"a":"d","b":{"p":"counter","d":10}}}"#,
                #"{"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#,
            ])
        client.say(#"{"t":"c","d":{"t":"p","d":{}}}"#)
        #expect(client.take(1) == [#"{"t":"c","d":{"t":"o","d":null}}"#])
        client.say(
            #"{"t":"d","d":{"r":3,"a":"p","b":{"p":"/counter","d":11,"h":"+r5aI9HvKKagELki8SYKBk0q7D4="}}}"#)
        #expect(
            client.take(2) == [
                #"{"t":"d","d":{"a":"d","b":{"p":"counter","d":11}}}"#,
                #"{"t":"d","d":{"r":3,"b":{"s":"ok","d":""}}}"#,
            ])
        client.say(
            #"{"t":"d","d":{"r":4,"a":"q","b":{"p":"/scores","q":{"l":2,"vf":"r","i":"points"},"t":1,"h":""}}}"#)
        #expect(
            client.take(2) == [
                #"{"t":"d","d":{"a":"d","b":{"p":"scores","d":{"ann":{"points":7},"bob":{"points":9}},"t":1}}}"#,
                #"{"t":"d","d":{"r":4,"b":{"s":"ok","d":{"w":["no_index"]}}}}"#,
            ])
        site.write("scores/cy", inner(["points": 8]))
        #expect(
            client.take(1) == [
                #"{"t":"d","d":{"a":"m","b":{"p":"scores","d":{"ann":null,"cy":{"points":8}},"t":1}}}"#
            ])
        client.say(
            #"{"t":"d","d":{"r":5,"a":"n","b":{"p":"/scores","q":{"l":2,"vf":"r","i":"points"},"t":1}}}"#,
            #"{"t":"d","d":{"r":6,"a":"p","b":{"p":"/admin","d":true}}}"#)
        #expect(
            client.take(2) == [
                #"{"t":"d","d":{"r":5,"b":{"s":"ok","d":""}}}"#,
                #"{"t":"d","d":{"r":6,"b":{"s":"permission_denied","d":"Permission denied"}}}"#,
            ])
    }

    /// Specification §5.2, §11.3: of much data only the parts that differ are sent.
    @Test func aCompoundHashGetsTheRangesThatDiffer() throws {
        let site = try Site()
        defer { site.close() }
        let old = Node(
            children: (0..<200).map { (TreeKey("key\($0)"), Node(.string(String(repeating: "x", count: 30)))) })
        let new = old.setting(TreeKey("key77"), to: "other")
        site.write("big", new)
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        var wire: [UInt8] = []
        TreeJSON.append(CompoundHash(of: old).wire, to: &wire)
        let compound = String(decoding: wire, as: UTF8.self)
        client.request(1, "q", #"{"p":"big","h":"\#(old.hash)","ch":\#(compound)}"#)
        let sent = client.take(2)
        #expect(sent.last == #"{"t":"d","d":{"r":1,"b":{"s":"ok","d":{}}}}"#)
        let head = #"{"t":"d","d":{"a":"rm","b":{"p":"big","d":["#
        try #require(sent[0].hasPrefix(head) && sent[0].hasSuffix("]}}}"))
        let list = Array(sent[0].utf8)
        #expect(list.count < 2000)
        let range = try TreeRange(list, in: head.utf8.count..<(list.count - 4))
        #expect(range.applied(to: old) == new)
        client.request(2, "q", #"{"p":"big","h":"\#(new.hash)","ch":\#(compound)}"#)
        #expect(client.take(1) == [#"{"t":"d","d":{"r":2,"b":{"s":"ok","d":{}}}}"#])
    }

    /// A client that reads nothing gets no changes and no answers; then the whole, then the answers.
    @Test func aClientWithoutRoomGetsTheWholeLater() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        client.request(1, "q", #"{"p":"a","h":""}"#)
        client.request(2, "q", #"{"p":"a","q":{"i":".key","l":1,"vf":"l"},"t":4,"h":""}"#)
        _ = client.take(5)
        client.request(3, "p", #"{"p":"a/b","d":1}"#)
        _ = client.take(3)
        client.fill()
        for value in 2..<10 { site.write("a/b", Node(.integer(Int64(value)))) }
        client.request(4, "g", #"{"p":"a","q":{}}"#)
        site.write("a/a", 1)
        #expect(client.sent == [])
        client.drain()
        let sent = client.take(3)
        #expect(sent.last == #"{"t":"d","d":{"r":4,"b":{"s":"ok","d":{"a":1,"b":9}}}}"#)
        #expect(
            sent.dropLast().sorted() == [
                #"{"t":"d","d":{"a":"d","b":{"p":"a","d":{"a":1,"b":9}}}}"#,
                #"{"t":"d","d":{"a":"d","b":{"p":"a","d":{"a":1},"t":4}}}"#,
            ])
        site.write("a/c", 2)
        #expect(client.take(1) == [#"{"t":"d","d":{"a":"d","b":{"p":"a/c","d":2}}}"#])
    }

    @Test func requestsThatWaitAreBounded() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        client.fill()
        for number in 0...Limits.realtimeRequestsWaitingMax { client.request(number, "s", "{}") }
        #expect(client.isPaused)
        #expect(client.sent == [])
        client.drain()
        #expect(client.take(Limits.realtimeRequestsWaitingMax + 1).count == Limits.realtimeRequestsWaitingMax + 1)
        #expect(!client.isPaused)
    }

    @Test func listensOfAConnectionAreBounded() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        for number in 0..<Limits.realtimeListensMax { client.request(number, "q", #"{"p":"a/k\#(number)","h":""}"#) }
        #expect(client.take(2 * Limits.realtimeListensMax).count == 2 * Limits.realtimeListensMax)
        client.request(99999, "q", #"{"p":"b","h":""}"#)
        #expect(client.take(1)[0].hasPrefix(#"{"t":"d","d":{"r":99999,"b":{"s":"too_big""#))
        client.request(100_000, "n", #"{"p":"a/k1"}"#)
        client.request(100_001, "q", #"{"p":"b","h":""}"#)
        #expect(client.take(3).last == #"{"t":"d","d":{"r":100001,"b":{"s":"ok","d":{}}}}"#)
    }

    @Test func whatIsNoMessageEndsTheConnection() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        client.say("nonsense")
        #expect(client.fault?.kind == .malformed)
    }

    /// What a crash left in the journal is done before anybody is served.
    @Test func whatACrashLeftIsDone() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        client.request(1, "o", #"{"p":"left","d":{".sv":"timestamp"}}"#)
        client.request(2, "o", #"{"p":"count","d":{".sv":{"increment":2}}}"#)
        _ = client.take(3)
        site.write("count", 5)
        // As after a crash: nobody ends the session, and its namespace is opened again.
        try site.namespace.runAbandoned(site.service)
        site.write("other", 1)
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "count") == 7)
        #expect(try view.value(at: "left")?.number ?? 0 > 1_600_000_000_000)
        #expect(try view.journal().isEmpty)
    }

    /// The journal is led from one state of the wishes to the next.
    @Test func theJournalHasWhatIsWished() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        defer { client.end() }
        _ = client.take(1)
        var writes = DisconnectWrites()
        for number in 1...60 {
            let path = ["a", "a/b", "a/b/c", "d", "d/e"].randomElement()!
            switch number % 5 {
            case 0:
                client.request(number, "oc", #"{"p":"\#(path)","d":null}"#)
                writes.cancel(TreePath(path))
            case 1:
                client.request(number, "om", #"{"p":"\#(path)","d":{"x":\#(number),"y/z":null}}"#)
                let place = TreePath(path)
                writes.merge([
                    TreeChange(path: place + "x", node: Node(.integer(Int64(number)))),
                    TreeChange(path: place + "y/z", node: .empty),
                ])
            default:
                client.request(number, "o", #"{"p":"\#(path)","d":{"k":\#(number)}}"#)
                writes.put(TreePath(path), inner(["k": Node(.integer(Int64(number)))]))
            }
            if number % 3 == 0 { continue }
            let answers = client.take(number % 3 == 1 && number > 1 ? 2 : 1)
            try #require(answers.allSatisfy { $0.hasSuffix(ok) }, "\(answers), \(String(describing: client.fault))")
            let view = try site.namespace.database.view()
            defer { view.close() }
            let kept = try view.journal()
            #expect(try kept.first.map { try DisconnectRecord($0).changes } ?? [] == writes.changes)
        }
    }

    @Test func aDamagedJournalKeepsNobodyFromTheRest() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        client.request(1, "o", #"{"p":"left","d":1}"#)
        _ = client.take(2)
        let isDone = Mutex(false)
        site.namespace.database.submit(
            TreeWrite(
                changes: [], nowMilliseconds: 0,
                journal: [JournalChange(session: "0", entry: "identity", record: Array("nonsense".utf8))])
        ) { _ in isDone.withLock { $0 = true } }
        while !isDone.withLock({ $0 }) { sched_yield() }
        try site.namespace.runAbandoned(site.service)
        site.write("other", 1)
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "left") == 1)
        #expect(try view.journal().map(\.session) == ["0"])
    }

    @Test func nothingStaysOfASession() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        client.request(1, "q", #"{"p":"a","h":""}"#)
        client.request(2, "o", #"{"p":"left","d":1}"#)
        _ = client.take(4)
        #expect(site.namespace.users.count == 1 && site.namespace.hub.isUsed)
        client.end()
        while !site.namespace.users.isEmpty { sched_yield() }
        #expect(!site.namespace.hub.isUsed)
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "left") == 1)
        #expect(try view.journal().isEmpty)
    }
}

/// What one client may make the server hold, and what that means to others.
@Suite struct SessionLoadTests {
    private func isOK(_ answer: String) -> Bool { answer.hasSuffix(#""b":{"s":"ok","d":""}}}"#) }

    /// A client that sends writes faster than they are made isn't read any further, and nothing of it is refused.
    @Test(.timeLimit(.minutes(1))) func writesOfAConnectionThatWaitAreBounded() throws {
        let site = try Site()
        defer { site.close() }
        let (client, other) = (site.open(), site.open(connection: 2))
        defer {
            client.end()
            other.end()
        }
        _ = (client.take(1), other.take(1))
        let count = Limits.realtimeWritesInFlightMax + Limits.realtimeRequestsWaitingMax + 1
        site.withBusyWriter {
            for number in 0..<count { client.request(number, "p", #"{"p":"a/k\#(number)","d":1}"#) }
            other.request(1, "p", #"{"p":"b","d":1}"#)
            #expect(client.isPaused)
            #expect(!other.isPaused)
            #expect(site.queuedWrites == Limits.realtimeWritesInFlightMax + 1)
        }
        let answers = client.take(count)
        #expect(answers.count == count && answers.allSatisfy(isOK))
        #expect(other.take(1).allSatisfy(isOK))
        #expect(!client.isPaused)
    }

    /// What writes become when they are decoded is counted until they are answered, whatever their size.
    @Test(.timeLimit(.minutes(1)), arguments: [2, 1000]) func decodedWritesOfAllConnectionsAreBounded(elements: Int)
        throws
    {
        let memory = ServerMemory(working: WorkingMemory(bytesMax: 1 << 20))
        let site = try Site(memory)
        defer { site.close() }
        let clients = (1...10).map { site.open(connection: UInt64($0)) }
        defer { for client in clients { client.end() } }
        for client in clients { _ = client.take(1) }
        let array = "[" + Array(repeating: "1", count: elements).joined(separator: ",") + "]"
        let sizeBytes = ParsedSize.ofJSON(Array(array.utf8))
        let count = 400 / 10
        site.withBusyWriter {
            for number in 0..<count {
                for client in clients { client.request(number, "p", #"{"p":"a","d":\#(array)}"#) }
            }
            _ = clients[9].sent
            #expect(memory.working.usedBytes <= 1 << 20)
            let uncounted = clients.count * Limits.realtimeUncountedRequestsBytesMax
            #expect(site.queuedWrites * sizeBytes <= 1 << 20 + uncounted)
            #expect(site.queuedWrites >= 10)
        }
        for client in clients {
            let answers = client.take(count)
            #expect(answers.count == count && answers.allSatisfy(isOK))
        }
        #expect(memory.working.usedBytes == 0)
    }

    /// The queue of the writer is full at the moment at which a client goes.
    @Test(.timeLimit(.minutes(1))) func whatIsWantedAtTheEndIsTriedAgain() throws {
        let site = try Site()
        defer { site.close() }
        let client = site.open()
        client.request(1, "o", #"{"p":"left","d":1}"#)
        _ = client.take(2)
        site.withBusyWriter {
            for _ in 0..<Limits.treeWriteQueueMax {
                site.namespace.database.submit(TreeWrite(changes: [], nowMilliseconds: 0)) { _ in }
            }
            client.end()
            while !site.namespace.users.isEmpty { sched_yield() }
        }
        site.write("other", 1)
        while site.queuedWrites > 0 { sched_yield() }
        site.service.runUnfinished()
        site.write("other", 2)
        let view = try site.namespace.database.view()
        defer { view.close() }
        #expect(try view.node(at: "left") == 1)
        #expect(try view.journal().isEmpty)
    }
}
