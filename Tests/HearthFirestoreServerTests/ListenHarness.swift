@testable import HearthDocuments
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthRules
import HearthEngine
import HearthTestSupport
import HearthWire
import Synchronization

@testable import HearthHost
@testable import HearthFirestoreServer

/// A service with its own loop, and clients of Listen streams without a network.
final class ListenHarness: Sendable {
    static let name = "projects/p/databases/(default)"
    let loop: EventLoop
    let pool = WorkerPool(shortThreadsMax: 1, longThreadsMax: 2)
    let registry: DatabaseRegistry
    let service: FirestoreService
    let database: Database

    init(
        _ memory: ServerMemory = ServerMemory(), reads: LongReads = LongReads(), rules: String? = nil,
        store: any StoreProvider = MemoryStoreProvider()
    ) throws {
        loop = try EventLoop()
        try loop.start()
        registry = DatabaseRegistry(provider: store)
        let access = AccessControl(isEmulator: true)
        if let rules, let ruleset = Ruleset.compile(rules).ruleset {
            access.rules.setFile(ruleset, database: "(default)")
        }
        service = FirestoreService(
            registry: registry, pool: pool, memory: memory, longReads: reads, options: FirestoreService.Options(),
            authenticator: Authenticator(isEmulator: true, project: "p"), access: access)
        database = try registry.database(DatabaseName(project: "p", database: "(default)"))
    }

    func stop() {
        registry.close()
        pool.stop()
        loop.stopAndJoin()
    }

    /// Runs on the loop and waits.
    @discardableResult
    func onLoop<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in loop.execute { continuation.resume(returning: body()) } }
    }

    func client(account: UInt64 = 1, connection: UInt64, identity: Identity = .owner) async -> ListenClient {
        let client = ListenClient(
            self, Requester(account: account, connection: connection, isAdministrator: false), identity)
        await onLoop { client.begin() }
        return client
    }

    // MARK: Requests

    static func query(_ id: Int, _ collection: String, in values: [String], more: String = "", token: String? = nil)
        -> String
    {
        let list = values.map { #"{"stringValue":"\#($0)"}"# }.joined(separator: ",")
        let filter =
            #"{"fieldFilter":{"field":{"fieldPath":"a"},"op":"IN","value":{"arrayValue":{"values":[\#(list)]}}}}"#
        return target(id, collection, #","where":\#(filter)\#(more)"#, token: token)
    }

    static func target(_ id: Int, _ collection: String, _ rest: String = "", token: String? = nil) -> String {
        let query = #"{"from":[{"collectionId":"\#(collection)"}]\#(rest)}"#
        let resume = token.map { #","resumeToken":"\#($0)""# } ?? ""
        return
            #"{"database":"\#(name)","addTarget":{"targetId":\#(id)\#(resume),"query":{"parent":"\#(name)/documents","structuredQuery":\#(query)}}}"#
    }

    static func base64(_ bytes: [UInt8]) -> String {
        var writer = JSONWriter()
        bytes.withUnsafeBytes { writer.base64($0) }
        return String(decoding: writer.bytes.filter { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
    }

    static func documents(_ id: Int, _ paths: [String]) -> String {
        let names = paths.map { "\"\(name)/documents/\($0)\"" }.joined(separator: ",")
        return #"{"database":"\#(name)","addTarget":{"targetId":\#(id),"documents":{"documents":[\#(names)]}}}"#
    }
}

/// Stores its responses, and accepts more or not. `@unchecked Sendable`: belongs to the loop, except `state`.
final class ListenClient: StreamCall, @unchecked Sendable {
    struct State {
        var responses: [ListenResponse] = []
        var sizeBytes = 0
        var end: Status?
    }

    let loop: EventLoop
    let cancellation = Cancellation()
    let format = MessageFormat.json(JSONOptions())
    let onceValues: [String] = []
    let triggersValues: [String] = []
    let identity: Identity
    let requester: Requester
    var onMessage: (([UInt8]) -> Void)?
    var onHalfClose: (() -> Void)?
    var onFault: ((Status) -> Void)?
    var onCancel: (() -> Void)?
    var onWritable: (() -> Void)?
    private let harness: ListenHarness
    private let state = Mutex(State())
    private(set) weak var stream: ListenStream?
    private var takes = true
    private var isPaused = false
    private var held: [[UInt8]] = []

    fileprivate init(_ harness: ListenHarness, _ requester: Requester, _ identity: Identity) {
        self.harness = harness
        self.requester = requester
        self.identity = identity
        loop = harness.loop
    }

    fileprivate func begin() {
        let stream = ListenStream(self, harness.service)
        self.stream = stream
    }

    var isFinished: Bool { end != nil || cancellation.isCancelled }
    var end: Status? { state.withLock { $0.end } }
    var responses: [ListenResponse] { state.withLock { $0.responses } }
    var changes: [TargetChangeMessage] { responses.compactMap(\.targetChange) }
    var currentCount: Int { changes.count { $0.targetChangeType == .current } }
    var refusals: [TargetChangeMessage] { changes.filter { $0.targetChangeType == .remove && $0.cause != nil } }

    func send(_ message: [UInt8]) -> Bool {
        do throws(Status) {
            let response = try ListenResponse(json: message, at: "")
            state.withLock {
                $0.responses.append(response)
                $0.sizeBytes += message.count
            }
        } catch { preconditionFailure("a message can't be read: \(error)") }
        return takes
    }

    func finish(_ status: Status) {
        state.withLock { $0.end = $0.end ?? status }
        forget()
    }

    private func forget() {
        onMessage = nil
        onHalfClose = nil
        onFault = nil
        onCancel = nil
        onWritable = nil
    }

    func pauseReading() { isPaused = true }

    func resumeReading() {
        isPaused = false
        while !isPaused, !held.isEmpty { onMessage?(held.removeFirst()) }
    }

    func ask(_ requests: [String]) async {
        await harness.onLoop { [self] in
            for request in requests {
                if isPaused { held.append(Array(request.utf8)) } else { onMessage?(Array(request.utf8)) }
            }
        }
    }

    func setTakes(_ takes: Bool) async {
        await harness.onLoop { [self] in
            self.takes = takes
            if takes { onWritable?() }
        }
    }

    /// The stream has no more work.
    func rest() async {
        await until { await harness.onLoop { [self] in isFinished || stream?.isIdle ?? true } }
    }

    func leave() async {
        await harness.onLoop { [self] in
            cancellation.cancel()
            let onCancel = onCancel
            forget()
            onCancel?()
        }
    }
}
