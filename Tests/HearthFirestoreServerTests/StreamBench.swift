@testable import HearthDocuments
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthRules
import HearthEngine
import HearthTestDoubles
import HearthWire
import Synchronization

@testable import HearthHost
@testable import HearthFirestoreServer

/// A call without a transport: a test sends its messages, and takes the responses or not.
///
/// `@unchecked Sendable`: belongs to its loop, except `state`.
final class TestCall: StreamCall, @unchecked Sendable {
    private struct State {
        var messages: [[UInt8]] = []
        /// The responses of a Listen stream, decoded.
        var responses: [ListenResponse] = []
        var end: Status?
        var hasCapacity = true
    }

    let loop: EventLoop
    let cancellation = Cancellation()
    let format: MessageFormat
    let onceValues: [String] = []
    let triggersValues: [String] = []
    let identity: Identity
    let requester: Requester
    var onMessage: (([UInt8]) -> Void)?
    var onHalfClose: (() -> Void)?
    var onFault: ((Status) -> Void)?
    var onCancel: (() -> Void)?
    var onWritable: (() -> Void)?
    private let state = Mutex(State())

    init(
        _ loop: EventLoop, identity: Identity = .owner, connection: UInt64 = 1,
        format: MessageFormat = .json(JSONOptions())
    ) {
        self.loop = loop
        self.identity = identity
        self.format = format
        requester = identity.requester(at: "192.0.2.1:1", connection: connection)
    }

    var isFinished: Bool { end != nil }
    var end: Status? { state.withLock { $0.end } }
    var messages: [[UInt8]] { state.withLock { $0.messages } }

    func send(_ message: [UInt8]) -> Bool {
        state.withLock { state in
            if state.end == nil {
                state.messages.append(message)
                if format.isJSON, let response = try? ListenResponse(json: message, at: "") {
                    state.responses.append(response)
                }
            }
            return state.hasCapacity
        }
    }

    var responses: [ListenResponse] { state.withLock { $0.responses } }

    func finish(_ status: Status) {
        state.withLock { $0.end = $0.end ?? status }
        (onMessage, onHalfClose, onFault, onCancel, onWritable) = (nil, nil, nil, nil, nil)
    }

    func pauseReading() {}
    func resumeReading() {}

    // MARK: For tests

    func run(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            loop.execute {
                body()
                continuation.resume()
            }
        }
    }

    func ask(_ string: String) async { await run { self.onMessage?(Array(string.utf8)) } }

    func set(hasCapacity: Bool) async {
        state.withLock { $0.hasCapacity = hasCapacity }
        if hasCapacity { await run { self.onWritable?() } }
    }

    func leave() async {
        await run {
            let onCancel = self.onCancel
            (self.onMessage, self.onHalfClose, self.onCancel, self.onWritable) = (nil, nil, nil, nil)
            onCancel?()
        }
    }
}

/// A service in memory with its own loop.
final class StreamBench: Sendable {
    let loop: EventLoop
    let registry: DatabaseRegistry
    let service: FirestoreService
    let database: Database
    static let name = DatabaseName(project: "p", database: "(default)")
    static let root = "projects/p/databases/(default)"

    init(
        memory: ServerMemory = ServerMemory(), longReads: LongReads = LongReads(), rules source: String? = nil,
        clock: any Clock = SystemClock(), store: (any Store)? = nil,
        pool: WorkerPool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 1)
    ) throws {
        loop = try EventLoop()
        try loop.start()
        registry = DatabaseRegistry(
            provider: store.map { OneStore($0, named: [StreamBench.name]) } ?? MemoryStoreProvider())
        let rules = RulesRegistry()
        if let source, let ruleset = Ruleset.compile(source).ruleset { rules.setFile(ruleset, database: "(default)") }
        service = FirestoreService(
            registry: registry, pool: pool, memory: memory,
            longReads: longReads, options: FirestoreService.Options(),
            authenticator: Authenticator(isEmulator: true, project: "p"),
            access: AccessControl(rules: rules, isEmulator: source == nil, project: "p", clock: clock))
        database = try registry.database(Self.name)
    }

    deinit {
        registry.close()
        loop.stopAndJoin()
    }

    func listen(identity: Identity = .owner, connection: UInt64 = 1) async -> TestCall {
        let call = TestCall(loop, identity: identity, connection: connection)
        await call.run { [service] in _ = ListenStream(call, service) }
        return call
    }

    /// The first request of a stream, or a later one.
    static func add(_ id: Int, limit: Int? = nil, more: String = "") -> String {
        let limit = limit.map { #", "limit": \#($0)"# } ?? ""
        return """
            {"database": "\(root)", "addTarget": {"targetId": \(id)\(more), "query": {"parent": "\(root)/documents",
            "structuredQuery": {"from": [{"collectionId": "c"}], "orderBy": [{"field": {"fieldPath": "n"}}]\(limit)}}}}
            """
    }

    static func add(_ id: Int, documents: [String]) -> String {
        let names = documents.map { #""\#(root)/documents/\#($0)""# }.joined(separator: ",")
        return """
            {"database": "\(root)", "addTarget": {"targetId": \(id), "documents": {"documents": [\(names)]}}}
            """
    }
}

extension TestCall {
    /// Targets whose results have been sent.
    var current: Set<Int32> {
        Set(responses.compactMap(\.targetChange).filter { $0.targetChangeType == .current }.flatMap(\.targetIds))
    }

    /// Removed targets, with the codes of the reasons.
    var refused: [Int32: Int32] {
        var refused: [Int32: Int32] = [:]
        for change in responses.compactMap(\.targetChange) where change.targetChangeType == .remove {
            for id in change.targetIds { refused[id] = change.cause?.code ?? 0 }
        }
        return refused
    }

    /// The current names of a target's documents.
    func documents(of target: Int32) -> Set<String> {
        var names: Set<String> = []
        for response in responses {
            if let change = response.documentChange, let name = change.document?.name {
                if change.targetIds.contains(target) { names.insert(name) }
                if change.removedTargetIds.contains(target) { names.remove(name) }
            }
            if let change = response.documentDelete, change.removedTargetIds.contains(target) {
                names.remove(change.document)
            }
            if let change = response.documentRemove, change.removedTargetIds.contains(target) {
                names.remove(change.document)
            }
        }
        return names
    }

    /// Boundaries of all targets.
    var boundaries: [TargetChangeMessage] {
        responses.compactMap(\.targetChange).filter { $0.targetChangeType == .noChange && $0.targetIds.isEmpty }
    }
}
