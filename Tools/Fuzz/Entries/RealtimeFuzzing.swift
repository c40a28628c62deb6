import HearthRealtimeServer
import HearthHost
import HearthFirestoreServer
import HearthConcurrency
import Glibc
import HearthModel
import HearthNetwork
import HearthRules
import HearthEngine
import HearthTree
import HearthTreeStorage

/// Entry point for fuzzing connections of the Realtime Database, with a client that checks the server's guarantees. A
/// violated invariant traps.
package enum RealtimeFuzzing {
    private static let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)

    /// Lines: a message of the client; `=PATH JSON`, another client's write; `r` and rules; `!` and `~`, the client
    /// stops and resumes reading; `x`, the client disconnects and connects again; `.`, the client waits for all
    /// responses.
    package static func fuzz(_ bytes: [UInt8]) {
        let service: RealtimeService
        let namespace: RealtimeNamespace
        do throws(Status) {
            service = try RealtimeService(
                RealtimeService.Configuration(), provider: MemoryStoreProvider(),
                authenticator: Authenticator(isEmulator: true, project: "p", IdentityConfiguration()), pool: pool)
            namespace = try service.namespace("n")
        } catch { preconditionFailure("no service: \(error)") }
        var client = RealtimeFuzzClient(StreamFuzzing.loop, service, namespace)
        for line in bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 60) {
            switch line[line.startIndex] {
            case UInt8(ascii: "="): write(line.dropFirst(), namespace)
            case UInt8(ascii: "r"):
                if let rules = try? TreeRuleset.compile(Array(line.dropFirst())) { namespace.setRules(rules) }
            case UInt8(ascii: "!"): client.onLoop { $0.fill() }
            case UInt8(ascii: "~"): client.onLoop { $0.drain() }
            case UInt8(ascii: "."): client.settle()
            case UInt8(ascii: "x"):
                client.leave()
                client = RealtimeFuzzClient(StreamFuzzing.loop, service, namespace)
            default:
                let message = Array(line)
                client.onLoop { $0.say(message) }
            }
        }
        client.settle()
        client.check()
        client.leave()
        service.close()
    }

    private static func write(_ line: ArraySlice<UInt8>, _ namespace: RealtimeNamespace) {
        let space = line.firstIndex(of: UInt8(ascii: " ")) ?? line.endIndex
        let path = TreePath(String(decoding: line[..<space], as: UTF8.self))
        guard let node = try? TreeJSON.node(Array(line[space...].dropFirst())) else { return }
        namespace.database.submit(
            TreeWrite(changes: [TreeChange(path: path, node: node)], nowMilliseconds: 0)
        ) { _ in }
    }
}

/// A client that knows only received messages. `@unchecked Sendable`: belongs to the loop.
private final class RealtimeFuzzClient: RealtimeCarrier, @unchecked Sendable {
    let loop: EventLoop
    let peer = RealtimePeer(address: "127.0.0.1:1", connection: 1)
    private(set) var queuedBytes = 0
    private let namespace: RealtimeNamespace
    private var session: RealtimeSession! = nil
    private var isEnded = false
    /// Requests without an answer, by number.
    private var open: [Int64: Int] = [:]
    /// The data of listens without a query, at their locations.
    private var tree = Node.empty
    private var windows: [Int64: (target: RealtimeTarget, node: Node)] = [:]
    /// These cannot be checked: the client claimed to have data, or used one tag twice.
    private var unclear: Set<RealtimeTarget> = []
    private var tags: Set<Int64> = []
    private var isTreeUnclear = false

    init(_ loop: EventLoop, _ service: RealtimeService, _ namespace: RealtimeNamespace) {
        self.loop = loop
        self.namespace = namespace
        onLoop { $0.session = RealtimeSession($0, host: "localhost", namespace, service) }
    }

    func onLoop(_ body: @escaping @Sendable (RealtimeFuzzClient) -> Void) {
        let done = FuzzLatch()
        loop.execute {
            body(self)
            done.open()
        }
        done.wait()
    }

    // MARK: The client's side

    func say(_ string: [UInt8]) {
        if isEnded { return }
        if let message = try? RealtimeClientMessage(string), case .request(let request) = message {
            open[request.number, default: 0] += 1
            if case .success(.listen(let target, let tag, let known)) = request.action { note(target, tag, known) }
        }
        session.receive(string)
    }

    private func note(_ target: RealtimeTarget, _ tag: Int64?, _ known: KnownData) {
        if known.hash?.isEmpty == false || known.compound != nil { unclear.insert(target) }
        // SDKs use tags for queries only.
        if (target.query == nil) != (tag == nil) { isTreeUnclear = true }
        guard let tag else { return }
        if target.query == nil {
            tags.insert(tag)
            windows[tag] = nil
            return
        }
        if tags.insert(tag).inserted { return windows[tag] = (target, .empty) }
        unclear.insert(target)
        if let other = windows[tag]?.target { unclear.insert(other) }
    }

    func fill() { queuedBytes = Limits.realtimeQueueBytesMax + 1 }

    func drain() {
        queuedBytes = 0
        if !isEnded { session.becameWritable() }
    }

    func belongs(to requester: Requester) {}
    func pauseReading() {}
    func resumeReading() {}

    func end(_ fault: RealtimeFault) {
        isEnded = true
        loop.execute { [self] in session.carrierEnded() }
    }

    func leave() {
        onLoop {
            $0.isEnded = true
            $0.session.carrierEnded()
        }
        wait { [self] in namespace.users.isEmpty }
        let view = try? namespace.database.view()
        precondition(try! view?.journal().isEmpty == true, "the journal keeps something of a session that is over")
        view?.close()
    }

    /// Waits for all responses and all listens.
    func settle() {
        onLoop { $0.drain() }
        wait { [self] in
            isEnded || open.isEmpty && session.readsInFlight == 0 && session.listens.values.allSatisfy(\.handle.isLive)
        }
    }

    /// - Parameter condition: checked on the loop, after all earlier jobs of the writer.
    private func wait(_ condition: @escaping () -> Bool) {
        let condition = LoopBound(condition)
        let holds = LoopBound(Box())
        var inARow = 0
        for _ in 0..<200_000 {
            let done = FuzzLatch()
            namespace.database.perform { [loop] _ in
                loop.execute {
                    holds.value.holds = condition.value()
                    done.open()
                }
            }
            done.wait()
            inARow = holds.value.holds ? inARow + 1 : 0
            if inARow >= 3 { return }
            if inARow == 0 { usleep(20) }
        }
        preconditionFailure("the connection doesn't come to rest: \(open)")
    }

    private final class Box { var holds = false }

    // MARK: The server's side

    func send(_ message: LargeMessage) {
        guard let body = try? message.body.file.read(0..<message.body.file.count) else {
            preconditionFailure("a file can't be read")
        }
        send(message.head + body + message.tail)
    }

    func send(_ push: RealtimePush, tag: Int64?) -> Bool {
        if queuedBytes > Limits.realtimeQueueBytesMax { return false }
        send(push.message(tag: tag))
        return true
    }

    var hasLarge: Bool { false }

    func send(_ message: [UInt8]) {
        precondition(loop.isCurrent, "a session talks on its loop")
        if isEnded { return }
        do throws(TreeDataError) {
            guard let data = try member("d", in: message), let kind = try member("t", in: message),
                try TreeJSON.value(message, in: kind).string == "d"
            else { return }
            if let number = try member("r", in: message, data), let of = try TreeJSON.value(message, in: number).integer
            {
                let left = (open[of] ?? 0) - 1
                precondition(left >= 0, "request \(of) is answered too often")
                open[of] = left == 0 ? nil : left
                return
            }
            guard let action = try member("a", in: message, data), let body = try member("b", in: message, data),
                let name = try TreeJSON.value(message, in: action).string
            else { preconditionFailure("neither answer nor push: \(String(decoding: message, as: UTF8.self))") }
            try take(name, message, body)
        } catch {
            preconditionFailure("\(error.message): \(String(decoding: message, as: UTF8.self))")
        }
    }

    private func member(_ name: String, in string: [UInt8], _ range: Range<Int>? = nil) throws(TreeDataError) -> Range<
        Int
    >? {
        try TreeJSON.members(string, in: range).first { $0.name == name }?.value
    }

    private func take(_ action: String, _ string: [UInt8], _ body: Range<Int>) throws(TreeDataError) {
        guard ["d", "m"].contains(action) else {
            if action == "rm" { isTreeUnclear = true }
            return
        }
        guard let range = try member("p", in: string, body), let data = try member("d", in: string, body),
            let path = try TreeJSON.value(string, in: range).string
        else { throw TreeDataError("a push without path or data") }
        let tag = try member("t", in: string, body).flatMap { range throws(TreeDataError) in
            try TreeJSON.value(string, in: range).integer
        }
        var changes: [TreeChange] = []
        if action == "m" {
            for (name, range) in try TreeJSON.members(string, in: data) {
                changes.append(
                    TreeChange(path: TreePath(path) + TreePath(name), node: try TreeJSON.node(string, in: range)))
            }
        } else {
            changes.append(TreeChange(path: TreePath(path), node: try TreeJSON.node(string, in: data)))
        }
        for change in changes { take(change, tag) }
    }

    private func take(_ change: TreeChange, _ tag: Int64?) {
        guard let tag else { return tree = tree.applying(change) }
        guard let (target, node) = windows[tag] else {
            return precondition(tags.contains(tag), "tag \(tag) is unknown")
        }
        if unclear.contains(target) { return }
        precondition(target.path.contains(change.location), "\(change.path) is sent to a listener at \(target.path)")
        let relative = TreeChange(path: change.path.relative(to: target.path), node: change.node)
        windows[tag]?.node = node.applying(relative).with(priority: nil)
    }

    // MARK: The client's data

    /// Compares the data of listens with the server's data. Only when all requests are complete.
    func check() {
        onLoop { $0.compare() }
    }

    private func compare() {
        if isEnded { return }
        guard let view = try? namespace.database.view() else { preconditionFailure("no view") }
        defer { view.close() }
        for (target, listen) in session.listens where !unclear.contains(target) {
            guard let node = try? view.node(at: target.path) else { preconditionFailure("\(target) can't be read") }
            if let query = target.query {
                guard let tag = listen.tag, let known = windows[tag], known.target == target else { continue }
                let wanted = query.result(of: node)
                precondition(known.node == wanted, "\(target): \(known.node) instead of \(wanted)")
            } else if !isTreeUnclear {
                let known = tree.node(at: target.path)
                precondition(known == node, "\(target): \(known) instead of \(node)")
            }
        }
    }
}
