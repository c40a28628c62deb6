@testable import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthRules
import HearthEngine
import HearthTestSupport
import HearthTree
import HearthTreeStorage
import Synchronization
import Testing

import Glibc

@testable import HearthHost
@testable import HearthRealtimeServer

/// A client's end of a session without a socket.
final class Line: RealtimeCarrier, @unchecked Sendable {
    // Belongs to the loop.
    let loop: EventLoop
    let peer: RealtimePeer
    var queuedBytes = 0
    var sent: [String] = []
    var fault: RealtimeFault?
    var isPaused = false
    var onSend: (() -> Void)?

    init(_ loop: EventLoop, connection: UInt64) {
        self.loop = loop
        peer = RealtimePeer(address: "192.0.2.1:\(connection)", connection: connection)
    }

    func send(_ message: [UInt8]) {
        sent.append(String(decoding: message, as: UTF8.self))
        onSend?()
    }
    func send(_ message: LargeMessage) {
        if isBlocked { large.append(message) }
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

    /// Whether large messages wait until the client takes them.
    var isBlocked = false
    var hasLarge: Bool { isBlocked && !large.isEmpty }
    var large: [LargeMessage] = []
    func belongs(to requester: Requester) {}
    func pauseReading() { isPaused = true }
    func resumeReading() { isPaused = false }
    func end(_ fault: RealtimeFault) { self.fault = fault }
}

/// A result that other threads produce; nil when there is none within a minute.
func awaited<Value>(_ look: () throws -> Value?) rethrows -> Value? {
    let end = ContinuousClock.now + .seconds(Patience.seconds)
    var polls = 0
    while true {
        if let value = try look() { return value }
        if ContinuousClock.now > end { return nil }
        polls += 1
        if polls < 1_000 { sched_yield() } else { usleep(1_000) }
    }
}

/// A service with one namespace and a loop.
final class Site {
    let service: RealtimeService
    let namespace: RealtimeNamespace
    let loop: EventLoop
    let pool: WorkerPool

    init(
        _ memory: ServerMemory = ServerMemory(), jobsMax: Int = 10_000,
        stores: any StoreProvider = MemoryStoreProvider()
    ) throws {
        pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 2, jobsMax: jobsMax)
        loop = try EventLoop()
        try loop.start()
        service = try RealtimeService(
            RealtimeService.Configuration(), provider: stores,
            authenticator: Authenticator(isEmulator: true, project: "p", IdentityConfiguration()), pool: pool,
            memory: memory)
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

    /// Whether the files of large answers have this total size: a worker may still use one that it has made.
    func holds(_ bytes: Int) -> Bool {
        awaited { service.spools.usedBytes == bytes ? true : nil } ?? false
    }

    func write(_ path: TreePath, _ node: Node) {
        let isDone = Mutex(false)
        namespace.database.submit(
            TreeWrite(changes: [TreeChange(path: path, node: node)], nowMilliseconds: 0)
        ) { _ in isDone.withLock { $0 = true } }
        while !isDone.withLock({ $0 }) { sched_yield() }
    }

    /// Blocks the writer until the end of `body`.
    func withBusyWriter(_ body: () throws -> Void) rethrows {
        let isOver = Mutex(false)
        let isBusy = Mutex(false)
        namespace.database.perform { _ in
            isBusy.withLock { $0 = true }
            while !isOver.withLock({ $0 }) { sched_yield() }
        }
        defer { isOver.withLock { $0 = true } }
        // Writes that are queued before it runs would be made before it.
        while !isBusy.withLock({ $0 }) { sched_yield() }
        try body()
    }

    /// Blocks the workers until the end of `body`.
    func withBusyWorkers(
        _ kinds: [WorkerPool.Kind] = [.brief, .short, .long, .long], _ body: () throws -> Void
    ) rethrows {
        let isOver = Mutex(false)
        let begun = Atomic(0)
        for kind in kinds {
            pool.run(kind, for: .server, refused: { _ in }) {
                begun.add(1, ordering: .relaxed)
                while !isOver.withLock({ $0 }) { sched_yield() }
            }
        }
        defer { isOver.withLock { $0 = true } }
        while begun.load(ordering: .relaxed) < kinds.count { sched_yield() }
        try body()
    }

    var waitingJobs: Int {
        let (brief, short, long) = pool.statistics
        return brief.waiting + short.waiting + long.waiting
    }

    /// Waits until the writer and the loop have no more jobs.
    func settle() {
        for _ in 0..<3 {
            let isDone = Mutex(false)
            namespace.database.perform { _ in isDone.withLock { $0 = true } }
            while !isDone.withLock({ $0 }) { sched_yield() }
            on {}
        }
    }

    var queuedWrites: Int { namespace.database.statistics.queuedWrites }

    func close() {
        loop.stopAndJoin()
        pool.stop()
        service.close()
    }
}

struct Client {
    let site: Site
    let line: Line
    let session: RealtimeSession

    func sendRaw(_ strings: String...) {
        site.loop.execute { [session] in for string in strings { session.receive(Array(string.utf8)) } }
    }

    func request(_ number: Int, _ action: String, _ body: String) {
        sendRaw(#"{"t":"d","d":{"r":\#(number),"a":"\#(action)","b":\#(body)}}"#)
    }

    /// Takes the sent messages, once there are at least this number.
    func take(_ count: Int) -> [String] {
        let taken = awaited {
            site.on { [line] () -> [String]? in
                if line.sent.count < count { return nil }
                defer { line.sent = [] }
                return line.sent
            }
        }
        return taken ?? site.on { [line] in line.sent + ["(nothing more came)"] }
    }

    var sent: [String] { site.on { [line] in line.sent } }
    var isPaused: Bool { site.on { [line] in line.isPaused } }
    var fault: RealtimeFault? { site.on { [line] in LoopBound(line.fault) }.value }

    /// Stops reading.
    func fill() { site.on { [line] in line.queuedBytes = Limits.realtimeQueueBytesMax + 1 } }

    /// Stores large messages until they are taken.
    func block() { site.on { [line] in line.isBlocked = true } }

    func takeLarge() {
        site.on { [line, session] in
            line.large = []
            session.becameWritable()
        }
    }

    func drain() {
        site.on { [line, session] in
            line.queuedBytes = 0
            session.becameWritable()
        }
    }

    func end() { site.on { [session] in session.carrierEnded() } }
}
