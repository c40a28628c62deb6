import HearthDocuments
import HearthFirestoreServer
import HearthHost
import HearthConcurrency
import Glibc
import HearthModel
import HearthNetwork
import HearthEngine
import HearthWire
import Synchronization

/// Entry points for fuzzing the streams, with clients that check their guarantees. A violated invariant traps.
package enum StreamFuzzing {
    static let loop: EventLoop = {
        do {
            let loop = try EventLoop()
            try loop.start()
            return loop
        } catch { preconditionFailure("no event loop: \(error)") }
    }()

    private static let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)

    /// Lines: a `ListenRequest` as JSON, in which `$T` is replaced by the newest resume token; `+PATH N` and `-PATH`
    /// for commits, `!` and `~` for a client that stops and resumes reading, `f` for unreadable input, `z` for
    /// clearing.
    package static func fuzzListen(_ bytes: [UInt8]) {
        run(bytes, stream: { ListenFuzzClient(loop: loop, $0, $1) }) { client, database in
            client.check(at: database)
        }
    }

    /// Lines: a `WriteRequest` as JSON, in which `$T` is replaced by the newest stream token; `h` for the end of the
    /// requests, `f` for unreadable input.
    package static func fuzzWrite(_ bytes: [UInt8]) {
        run(bytes, stream: { WriteFuzzClient(loop: loop, $0, $1) }) { client, _ in client.check() }
    }

    private static func run<Client: StreamFuzzClient>(
        _ bytes: [UInt8], stream: (FirestoreService, Database) -> Client, check: (Client, Database) -> Void
    ) {
        let registry = DatabaseRegistry(provider: MemoryStoreProvider())
        let service = FirestoreService(
            registry: registry, pool: pool, options: FirestoreService.Options(),
            authenticator: Authenticator(isEmulator: true), access: AccessControl(isEmulator: true))
        let database: Database
        do throws(Status) {
            database = try registry.database(DatabaseName(project: "p", database: "(default)"))
        } catch { preconditionFailure("no database: \(error)") }
        let client = stream(service, database)
        for line in bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 60) { client.take(Array(line)) }
        client.settle()
        check(client, database)
        client.leave()
        registry.close()
    }

    /// Lines of a WebChannel session: `P` and a form, the messages of a client; `A` and a number, an acknowledgement;
    /// `G` and `L`, a back channel that streams or polls; `D`, it breaks; `S` and a string, a message of the server;
    /// `W`, the client reads; `C`, the end.
    package static func fuzzWebChannel(_ bytes: [UInt8]) {
        var model = WebChannelFuzzModel()
        for line in bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 200) { model.take(line[...]) }
        model.check()
    }
}

/// A call without a connection. `@unchecked Sendable`: belongs to the loop.
class StreamFuzzClient: StreamCall, @unchecked Sendable {
    let loop: EventLoop
    let cancellation = Cancellation()
    let format = MessageFormat.json(JSONOptions())
    let identity = Identity.owner
    let requester = Requester.server
    var onMessage: (([UInt8]) -> Void)?
    var onHalfClose: (() -> Void)?
    var onFault: ((Status) -> Void)?
    var onCancel: (() -> Void)?
    var onWritable: (() -> Void)?
    private(set) var end: Status?
    private let database: Database
    private var hasCapacity = true
    private var isPaused = false
    fileprivate private(set) var isFaulted = false
    private var held: [[UInt8]] = []
    fileprivate var token = ""
    fileprivate var requests = 0

    init(loop: EventLoop, _ service: FirestoreService, _ database: Database) {
        self.loop = loop
        self.database = database
    }

    var isFinished: Bool { end != nil }

    func received(_ message: [UInt8]) {}

    func willSend(_ message: [UInt8]) {}

    func send(_ message: [UInt8]) -> Bool {
        precondition(loop.isCurrent, "a stream talks on its loop")
        if !isFinished { received(message) }
        return hasCapacity
    }

    func finish(_ status: Status) {
        if isFinished { return }
        end = status
        forget()
    }

    private func forget() {
        onMessage = nil
        onHalfClose = nil
        onFault = nil
        onCancel = nil
        onWritable = nil
    }

    fileprivate static func base64(_ bytes: [UInt8]) -> String {
        var writer = JSONWriter()
        bytes.withUnsafeBytes { writer.base64($0) }
        return String(decoding: writer.bytes.filter { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
    }

    func pauseReading() { isPaused = true }

    func resumeReading() {
        isPaused = false
        while !isPaused, !held.isEmpty { onMessage?(held.removeFirst()) }
    }

    // MARK: The input

    func take(_ line: [UInt8]) {
        switch line[0] {
        case UInt8(ascii: "{"):
            onLoop { [self] in
                if isFaulted { return }
                let string = String(decoding: line, as: UTF8.self).split(
                    separator: "$T", omittingEmptySubsequences: false)
                let message = Array(string.joined(separator: token).utf8)
                requests += 1
                willSend(message)
                if isPaused { held.append(message) } else { onMessage?(message) }
            }
        case UInt8(ascii: "+"), UInt8(ascii: "-"): commit(line)
        case UInt8(ascii: "!"): onLoop { [self] in hasCapacity = false }
        case UInt8(ascii: "~"): makeSpace()
        case UInt8(ascii: "h"): onLoop { [self] in if !isFaulted { onHalfClose?() } }
        case UInt8(ascii: "f"): onLoop { [self] in fault() }
        case UInt8(ascii: "z"):
            let done = FuzzLatch()
            database.clear { _ in done.open() }
            done.wait()
        default: break
        }
    }

    private func fault() {
        guard !isFaulted, !isFinished, held.isEmpty else { return }
        isFaulted = true
        let status = Status.internalError("a message is not valid gzip")
        if let onFault {
            self.onFault = nil
            return onFault(status)
        }
        let onCancel = onCancel
        finish(status)
        onCancel?()
    }

    func makeSpace() {
        onLoop { [self] in
            hasCapacity = true
            onWritable?()
        }
    }

    private func commit(_ line: [UInt8]) {
        let words = String(decoding: line.dropFirst(), as: UTF8.self).split(separator: " ")
        guard let path = words.first else { return }
        do throws(Status) {
            let name = try ResourceName(document: database.name.string + "/documents/" + path)
            let number = words.count > 1 ? Int64(words[1]) ?? 0 : 0
            let fields = MapValue([.init(name: "n", value: .integer(number))])
            let write = Write(
                document: name, operation: line[0] == UInt8(ascii: "+") ? .update(fields: fields, mask: nil) : .delete)
            let done = FuzzLatch()
            database.commit([write], sizeBytes: line.count) { _ in done.open() }
            done.wait()
        } catch { return }
    }

    func onLoop(_ body: @escaping @Sendable () -> Void) {
        let done = FuzzLatch()
        loop.execute {
            body()
            done.open()
        }
        done.wait()
    }

    var isIdle: Bool { true }

    /// Waits until no further event can follow.
    func settle() {
        makeSpace()
        let quiet = Mutex(0)
        for _ in 0..<200_000 {
            onLoop { [self] in
                let isQuiet = isFinished || isIdle
                quiet.withLock { $0 = isQuiet ? $0 + 1 : 0 }
            }
            if quiet.withLock({ $0 }) >= 3 { return }
            usleep(20)
        }
        preconditionFailure("the stream does not become idle")
    }

    func leave() {
        onLoop { [self] in
            cancellation.cancel()
            let onCancel = onCancel
            forget()
            onCancel?()
        }
    }
}

/// Opened once, by any thread.
final class FuzzLatch: Sendable {
    private let isOpen = Atomic<Bool>(false)

    func open() { isOpen.store(true, ordering: .releasing) }

    func wait() { while !isOpen.load(ordering: .acquiring) { sched_yield() } }
}

/// Tracks its targets as an SDK does. `@unchecked Sendable`: belongs to the loop.
final class ListenFuzzClient: StreamFuzzClient, @unchecked Sendable {
    private struct Target {
        var documents: Set<String> = []
        var isCurrent = false
    }

    private weak var stream: ListenStream?
    private var targets: [Int32: Target] = [:]
    private var readTime = Timestamp(microseconds: 0)
    /// Targets that resumed from a token, without this client's earlier data.
    private var resumed: Set<Int32> = []

    override init(loop: EventLoop, _ service: FirestoreService, _ database: Database) {
        super.init(loop: loop, service, database)
        onLoop { [self] in
            let stream = ListenStream(self, service)
            self.stream = stream
        }
    }

    override var isIdle: Bool { stream?.isIdle ?? true }

    override func received(_ bytes: [UInt8]) {
        let message: ListenResponse
        do throws(Status) {
            message = try ListenResponse(json: bytes, at: "")
        } catch { preconditionFailure("a message can't be read: \(error)") }
        if let change = message.targetChange { return take(change) }
        if let change = message.documentChange, let document = change.document {
            for id in change.targetIds {
                precondition(targets[id] != nil, "a document of a target that isn't there")
                targets[id]?.documents.insert(document.name)
            }
            for id in change.removedTargetIds { remove(document.name, id) }
        }
        if let change = message.documentDelete { for id in change.removedTargetIds { remove(change.document, id) } }
        if let change = message.documentRemove { for id in change.removedTargetIds { remove(change.document, id) } }
        if let filter = message.filter {
            let count = targets[filter.targetId]?.documents.count
            precondition(count != nil, "a filter of a target that isn't there")
        }
    }

    private func remove(_ name: String, _ id: Int32) {
        precondition(targets[id] != nil, "a document leaves a target that isn't there")
        targets[id]?.documents.remove(name)
    }

    private func take(_ change: TargetChangeMessage) {
        if !change.resumeToken.isEmpty { token = Self.base64(change.resumeToken) }
        switch change.targetChangeType {
        case .add:
            for id in change.targetIds {
                precondition(targets[id] == nil, "a target is added twice")
                targets[id] = Target()
            }
        // A target that was requested twice stays.
        case .remove where change.cause?.code == Int32(Status.Code.alreadyExists.rawValue): break
        case .remove: for id in change.targetIds { targets[id] = nil }
        case .reset:
            for id in change.targetIds {
                precondition(targets[id] != nil, "a target that isn't there is reset")
                targets[id] = Target()
            }
        case .current:
            for id in change.targetIds {
                precondition(targets[id] != nil, "a target that isn't there is current")
                targets[id]?.isCurrent = true
            }
        default:
            precondition(change.targetIds.isEmpty, "a boundary names no targets")
            precondition(targets.values.allSatisfy(\.isCurrent), "a boundary speaks for a target that isn't current")
            guard let time = try? change.readTime?.timestamp() else { preconditionFailure("a boundary without a time") }
            precondition(time >= readTime, "time goes back")
            readTime = time
        }
    }

    /// The client's final data equals the results of its queries, if the client began without data.
    func check(at database: Database) {
        onLoop { [self] in
            if isFinished { return }
            precondition(targets.values.allSatisfy(\.isCurrent), "a target isn't current in the end")
            do throws(Status) {
                let view = try database.view()
                for (id, count) in try stream?.resultCounts(view) ?? [:] {
                    guard let target = targets[id] else { preconditionFailure("a target isn't there") }
                    if resumed.contains(id) { continue }
                    precondition(target.documents.count == count, "target \(id) has other documents than its query")
                }
            } catch { preconditionFailure("the results can't be found: \(error)") }
        }
    }

    override func willSend(_ message: [UInt8]) {
        guard let request = try? ListenRequest(json: message, at: ""), let target = request.addTarget else { return }
        if target.resumeToken != nil || target.readTime != nil { resumed.insert(target.targetId) }
    }
}

/// Expects a response to each request, in order. `@unchecked Sendable`: belongs to the loop.
final class WriteFuzzClient: StreamFuzzClient, @unchecked Sendable {
    private weak var stream: WriteStream?
    private var answers = 0
    private var lastTime = Timestamp(microseconds: 0)

    override init(loop: EventLoop, _ service: FirestoreService, _ database: Database) {
        super.init(loop: loop, service, database)
        onLoop { [self] in
            let stream = WriteStream(self, service)
            self.stream = stream
        }
    }

    override var isIdle: Bool { stream?.isIdle ?? true }

    override func received(_ bytes: [UInt8]) {
        let message: WriteResponse
        do throws(Status) {
            message = try WriteResponse(json: bytes, at: "")
        } catch { preconditionFailure("a message can't be read: \(error)") }
        answers += 1
        precondition(answers <= requests, "more answers than requests")
        precondition(message.streamId.isEmpty == (answers > 1), "the first answer names the stream, and no other")
        precondition(!message.streamToken.isEmpty, "an answer without a token")
        token = Self.base64(message.streamToken)
        if answers > 1 {
            guard let time = try? message.commitTime?.timestamp() else { preconditionFailure("no commit time") }
            precondition(time >= lastTime, "time goes back")
            lastTime = time
        }
    }

    func check() {
        onLoop { [self] in
            if isFinished { return }
            precondition(!isFaulted, "a stream goes on without input")
            precondition(answers == requests, "a request has no answer")
        }
    }
}

/// Both ends of a session, and an unreliable network between them.
struct WebChannelFuzzModel {
    private var session = WebChannelSession(id: "fuzz")
    private var said: [[UInt8]] = []
    private var receivedID: Int64 = 0
    private var deliveredCount = 0
    private var isOpen = false
    private var sentNumbers: Set<Int64> = []

    mutating func take(_ line: ArraySlice<UInt8>) {
        guard let first = line.first else { return }
        let rest = Array(line.dropFirst())
        switch first {
        case UInt8(ascii: "P"):
            do throws(Status) {
                let body = try ForwardBody(rest)
                for message in body.messages { sentNumbers.insert(message.number) }
                deliveredCount += try session.receive(body).count
                // Messages are accepted in the order of their numbers, each once.
                precondition(
                    (0..<Int64(deliveredCount)).allSatisfy(sentNumbers.contains), "a message that was not sent")
                precondition(!sentNumbers.contains(Int64(deliveredCount)), "a message that was due wasn't taken")
            } catch { precondition(error.code != .ok) }
        case UInt8(ascii: "A"):
            guard let id = ForwardBody.decimal(String(decoding: rest, as: UTF8.self)) else { return }
            // A client that acknowledges messages falsely loses them.
            session.acknowledge(id)
            receivedID = max(receivedID, min(id, session.lastID))
        case UInt8(ascii: "G"), UInt8(ascii: "L"):
            session.acknowledge(receivedID)
            session.attach(polls: first == UInt8(ascii: "L"))
            isOpen = true
        case UInt8(ascii: "D"):
            // Messages on the network are lost.
            while session.takeOutput() != nil {}
            session.detach()
            isOpen = false
        case UInt8(ascii: "S"):
            session.append(
                Array("[\"".utf8) + rest.filter { $0 >= 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
                    + Array("\"]".utf8))
        case UInt8(ascii: "W"): read()
        case UInt8(ascii: "C"): session.close()
        default: break
        }
        precondition(session.queuedBytes >= 0, "less than nothing is queued")
        _ = session.answer
    }

    private mutating func read() {
        while let output = session.takeOutput() {
            precondition(isOpen, "something is written although the client does not read")
            let parts = output.bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
            precondition(parts.count == 2 && Int(String(decoding: parts[0], as: UTF8.self)) == parts[1].count)
            let ids: [Int64]
            do throws(Status) {
                ids = try Self.ids(Array(parts[1]))
            } catch { preconditionFailure("a frame can't be read: \(error)") }
            for id in ids {
                precondition(id == receivedID + 1, "array \(id) comes after \(receivedID)")
                receivedID = id
            }
            if output.endsBackChannel { isOpen = false }
        }
    }

    /// The ids of a frame's arrays.
    private static func ids(_ string: [UInt8]) throws(Status) -> [Int64] {
        let ids = string.withUnsafeBytes { bytes in
            Result { () throws(Status) in
                var reader = try JSONReader(bytes)
                var ids: [Int64] = []
                var isFirst = true
                try reader.openContainer(UInt8(ascii: "["))
                while try reader.nextElement(&isFirst) { ids.append(try id(&reader)) }
                try reader.endDocument()
                return ids
            }
        }
        return try ids.get()
    }

    /// Reads one array and returns its id.
    private static func id(_ reader: inout JSONReader) throws(Status) -> Int64 {
        var isFirst = true
        var id: Int64?
        try reader.openContainer(UInt8(ascii: "["))
        while try reader.nextElement(&isFirst) {
            let element = try reader.skipValue()
            id = id ?? ForwardBody.decimal(String(decoding: reader.bytes[element], as: UTF8.self))
        }
        guard let id else { throw .invalidArgument("no id") }
        return id
    }

    /// A client that returns receives all messages.
    mutating func check() {
        for _ in 0..<100_000 where receivedID < session.lastID {
            session.acknowledge(receivedID)
            session.attach(polls: false)
            isOpen = true
            read()
        }
        precondition(receivedID == session.lastID, "a message is lost")
    }
}
