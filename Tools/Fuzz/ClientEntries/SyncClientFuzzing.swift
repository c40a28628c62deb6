import Dispatch
import Foundation
import HearthConcurrency
import HearthModel
import HearthSync
import HearthWire
import Synchronization

/// The entry point for fuzzing what a server of Firestore sends to the Swift client: answers to its streams and calls, in any order, while
/// an app listens and writes. A violated invariant traps:
///
/// - Nothing that a server sends makes the cache fail, which would end the client with all of its listeners and writes.
/// - Each call completes once, at the latest when the client is terminated.
/// - Nothing follows a listener's error, and the changes of each of its snapshots lead from the former documents to the present ones.
package enum SyncClientFuzzing {
    /// The bytes choose the cache, then step after step what the app and the server do.
    package static func fuzz(_ bytes: [UInt8]) {
        var choices = Choices(bytes: bytes[...])
        let run = Run(cache: choices.below(4))
        while !choices.isAtEnd { run.step(&choices) }
        run.end()
    }

    static let database = DatabaseName(project: "p")
}

/// Bytes as a series of choices; 0 at its end.
private struct Choices {
    var bytes: ArraySlice<UInt8>
    var isAtEnd: Bool { bytes.isEmpty }

    mutating func below(_ bound: Int) -> Int { Int(bytes.popFirst() ?? 0) % bound }
    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
    mutating func list<Element>(_ bound: Int, _ element: (inout Choices) -> Element) -> [Element] {
        (0..<below(bound)).map { _ in element(&self) }
    }
}

// MARK: The server's messages

extension Choices {
    /// Small ids are those of listens (even) and lookups (odd).
    mutating func targetID() -> Int32 { pick([2, 4, 6, 8, 1, 3, 5, 10, 0, -2, .max, .min]) }
    mutating func targetIDs() -> [Int32] { list(4) { $0.targetID() } }
    mutating func token() -> [UInt8] { pick([[], [1], [2, 3]]) }

    mutating func time() -> TimestampMessage? {
        let times = [
            TimestampMessage(seconds: 1), TimestampMessage(seconds: 2), TimestampMessage(seconds: 3),
            TimestampMessage(seconds: 4, nanos: 1000), TimestampMessage(seconds: 5), TimestampMessage(seconds: 0),
            TimestampMessage(seconds: -1), TimestampMessage(seconds: 253_402_300_799, nanos: 999_999_999),
            TimestampMessage(seconds: -62_135_596_800), TimestampMessage(seconds: .max),
            TimestampMessage(seconds: .min),
            TimestampMessage(seconds: 6, nanos: -1), TimestampMessage(seconds: 6, nanos: .max),
        ]
        let index = below(times.count + 1)
        return index < times.count ? times[index] : nil
    }

    mutating func name() -> String {
        let root = "projects/p/databases/(default)/documents"
        return pick([
            root + "/c/a", root + "/c/b", root + "/c/d", root + "/c/e", root + "/d/a", root + "/c/a/s/b",
            root + "/d/a/s/b",
            root, root + "/c", root + "/c/__id7__", root + "//", "", "projects/q/databases/(default)/documents/c/a",
            root + "/c/" + String(repeating: "x", count: 1501), root + "/c/\u{0}",
        ])
    }

    mutating func value(_ depth: Int = 0) -> Value {
        let values: [Value] = [
            .integer(1), .integer(2), .integer(3), .integer(.max), .integer(.min), .double(2.5), .double(.nan),
            .double(-0.0), .double(.infinity), .string("x"), .null, .boolean(true), .bytes([0, 255]), .timestamp(.none),
            .reference("projects/p/databases/(default)/documents/c/a"), .reference("x"),
            .geoPoint(GeoPoint(latitude: .nan, longitude: 1e300)), .vector([1, .nan]), .vector([]),
            .map(
                MapValue([
                    MapValue.Field(name: "__type__", value: .string("server_timestamp")),
                    MapValue.Field(name: "__local_write_time__", value: .integer(1)),
                ])),
        ]
        let index = below(values.count + 4)
        if index < values.count { return values[index] }
        switch depth < 3 ? index - values.count : 3 {
        case 0: return .array(list(4) { $0.value(depth + 1) })
        case 1: return .map(fields(depth + 1))
        case 2: return (0..<150).reduce(.integer(1)) { value, _ in .map(MapValue([.init(name: "m", value: value)])) }
        default: return .string(String(repeating: "y", count: 3000))
        }
    }

    mutating func fields(_ depth: Int = 0) -> MapValue {
        var names: Set<String> = []
        var fields: [MapValue.Field] = []
        for _ in 0..<below(4) {
            let name = pick(["n", "s", "m", "", "__name__", "__type__", "a.b"])
            let value = value(depth)
            if names.insert(name).inserted { fields.append(MapValue.Field(name: name, value: value)) }
        }
        return MapValue(fields)
    }

    mutating func listenResponse() -> ListenResponse {
        switch below(6) {
        case 0, 1:
            var change = TargetChangeMessage(
                targetChangeType: .init(rawValue: pick([0, 1, 2, 3, 4, 7, -1])), targetIds: targetIDs(),
                resumeToken: token(), readTime: time())
            if below(4) == 1 { change.cause = StatusMessage(code: Int32(below(20)) - 1, message: "cause") }
            return ListenResponse(targetChange: change)
        case 2:
            let document = DocumentMessage(name: name(), fields: fields(), createTime: time(), updateTime: time())
            return ListenResponse(
                documentChange: DocumentChangeMessage(
                    document: below(16) == 15 ? nil : document, targetIds: targetIDs(), removedTargetIds: targetIDs()))
        case 3:
            return ListenResponse(
                documentDelete: DocumentDeleteMessage(document: name(), removedTargetIds: targetIDs(), readTime: time())
            )
        case 4:
            return ListenResponse(
                documentRemove: DocumentRemoveMessage(document: name(), removedTargetIds: targetIDs(), readTime: time())
            )
        default:
            var filter = ExistenceFilterMessage(targetId: targetID(), count: pick([0, 1, 2, 3, -1, .max, .min]))
            if below(2) == 1 {
                filter.unchangedNames = BloomFilterMessage(
                    bits: BitSequenceMessage(
                        bitmap: list(20) { UInt8($0.below(256)) }, padding: pick([0, 1, 7, 8, -1, .max, .min])),
                    hashCount: pick([0, 1, 5, 16, -1, .max, .min]))
            }
            return ListenResponse(filter: filter)
        }
    }

    mutating func writeResponse() -> WriteResponse {
        WriteResponse(
            streamId: pick(["", "hearth-1", "s"]), streamToken: token(),
            writeResults: list(4) { choices in
                WriteResultMessage(updateTime: choices.time(), transformResults: choices.list(3) { $0.value() })
            }, commitTime: time())
    }

    mutating func status() -> Status { Status(Status.Code(rawValue: below(17)) ?? .unknown, "the server's error") }

    /// The usual answers to a listen: the other steps rarely come to a snapshot.
    mutating func snapshot() -> [ListenResponse] {
        let targets = [pick([2, 4, 6, 8, 1, 3] as [Int32])]
        var responses = [ListenResponse(targetChange: TargetChangeMessage(targetChangeType: .add, targetIds: targets))]
        responses += list(4) { choices in
            ListenResponse(
                documentChange: DocumentChangeMessage(
                    document: DocumentMessage(
                        name: choices.name(), fields: choices.fields(), createTime: TimestampMessage(seconds: 1),
                        updateTime: choices.time()), targetIds: targets))
        }
        let time = time()
        responses.append(
            ListenResponse(
                targetChange: TargetChangeMessage(
                    targetChangeType: .current, targetIds: targets, resumeToken: token(), readTime: time)))
        responses.append(ListenResponse(targetChange: TargetChangeMessage(targetChangeType: .noChange, readTime: time)))
        return responses
    }
}

// MARK: The server

/// `@unchecked Sendable`: the lock guards everything.
private final class ChoosingServer: Datastore, @unchecked Sendable {
    private let condition = NSCondition()
    private var listen: (@Sendable (StreamEvent<ListenResponse>) -> Void)?
    private var write: (@Sendable (StreamEvent<WriteResponse>) -> Void)?
    private var changed: (@Sendable () -> Void)?
    private var answers = Choices(bytes: [])

    private final class Stream<Request: Sendable>: RequestStream {
        let onEnd: @Sendable () -> Void
        init(_ onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
        func send(_ request: Request) {}
        func finish() { onEnd() }
        func cancel() { onEnd() }
    }

    private func with<Result>(_ body: () -> Result) -> Result {
        condition.withLock {
            defer { condition.broadcast() }
            return body()
        }
    }

    func openListen(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void
    ) -> any RequestStream<ListenRequest> {
        with {
            precondition(listen == nil, "two watch streams at a time")
            listen = onEvent
        }
        onEvent(.opened)
        return Stream { [self] in with { listen = nil } }
    }

    func openWrite(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<WriteResponse>) -> Void
    ) -> any RequestStream<WriteRequest> {
        with {
            precondition(write == nil, "two write streams at a time")
            write = onEvent
        }
        onEvent(.opened)
        return Stream { [self] in with { write = nil } }
    }

    /// What comes over a connection is encoded, and what cannot be decoded ends the stream: see `GRPCDatastore`.
    private static func received<Message: WireMessage>(_ message: Message) -> StreamEvent<Message> {
        do throws(Status) { return .response(try Message(protobuf: message.protobuf())) } catch {
            return .closed(.internalError("the server's message cannot be read: \(error.message)"))
        }
    }

    func send(_ response: ListenResponse) {
        let event = Self.received(response)
        awaitStream { listen != nil }
        let onEvent = with { () -> (@Sendable (StreamEvent<ListenResponse>) -> Void)? in
            defer { if case .closed = event { listen = nil } }
            return listen
        }
        onEvent?(event)
    }

    func send(_ response: WriteResponse) {
        let event = Self.received(response)
        awaitStream { write != nil }
        let onEvent = with { () -> (@Sendable (StreamEvent<WriteResponse>) -> Void)? in
            defer { if case .closed = event { write = nil } }
            return write
        }
        onEvent?(event)
    }

    func closeListen(_ status: Status) { with { listen.take() }?(.closed(status)) }
    func closeWrite(_ status: Status) { with { write.take() }?(.closed(status)) }
    func changeNetwork() { with { changed }?() }

    /// A stream opens on other threads, and later when its last attempts have failed.
    private func awaitStream(_ isOpen: () -> Bool) {
        condition.withLock {
            let deadline = Date(timeIntervalSinceNow: 0.001)
            while !isOpen(), condition.wait(until: deadline) {}
        }
    }

    // MARK: Calls

    func answer(with choices: inout Choices) {
        let bytes = choices.bytes.prefix(40)
        choices.bytes = choices.bytes.dropFirst(40)
        with { answers = Choices(bytes: bytes) }
    }

    private func answer<Message: WireMessage>(_ make: (inout Choices) -> Message) throws(Status) -> Message {
        let event = with { Self.received(make(&answers)) }
        switch event {
        case .response(let message): return message
        case .closed(let status): throw status
        case .opened: throw .internalError("no answer")
        }
    }

    func commit(_ request: CommitRequest, headers: RequestHeaders) async throws(Status) -> CommitResponse {
        try answer { choices in
            CommitResponse(
                writeResults: choices.list(4) { WriteResultMessage(updateTime: $0.time()) }, commitTime: choices.time())
        }
    }

    func batchGetDocuments(
        _ request: BatchGetDocumentsRequest, headers: RequestHeaders
    ) async throws(Status) -> [BatchGetDocumentsResponse] {
        var responses: [BatchGetDocumentsResponse] = []
        for _ in 0..<with({ answers.below(4) }) {
            responses.append(
                try answer { choices in
                    var response = BatchGetDocumentsResponse()
                    if choices.below(2) == 0 {
                        response.found = DocumentMessage(
                            name: choices.name(), fields: choices.fields(), updateTime: choices.time())
                    } else {
                        response.missing = choices.name()
                    }
                    response.readTime = choices.time()
                    return response
                })
        }
        return responses
    }

    func runAggregationQuery(
        _ request: RunAggregationQueryRequest, headers: RequestHeaders
    ) async throws(Status) -> [RunAggregationQueryResponse] {
        [
            try answer { choices in
                let fields = ["aggregation_0", "aggregation_1"].prefix(choices.below(3))
                    .map { MapValue.Field(name: $0, value: choices.value()) }
                return RunAggregationQueryResponse(
                    result: AggregationResultMessage(aggregateFields: MapValue(Array(fields))))
            }
        ]
    }

    func observeReachability(_ changed: @escaping @Sendable () -> Void) { with { self.changed = changed } }
    func shutDown() {
        with {
            changed = nil
            listen = nil
            write = nil
        }
    }
}

/// `@unchecked Sendable`: the lock guards everything.
private final class ChangingUser: CredentialsProvider, @unchecked Sendable {
    private let lock = NSLock()
    private var user = ClientUser.unauthenticated
    private var changed: (@Sendable (ClientUser) -> Void)?

    func token() async throws(Status) -> (user: ClientUser, token: String?) { (lock.withLock { user }, nil) }
    func invalidateToken() {}
    func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?) {
        let user = lock.withLock {
            self.changed = changed
            return self.user
        }
        changed?(user)
    }
    func change(_ user: ClientUser) {
        let changed = lock.withLock {
            self.user = user
            return self.changed
        }
        changed?(user)
    }
}

// MARK: The app

private final class Run {
    private let server = ChoosingServer()
    private let user = ChangingUser()
    private let client: SyncClient
    private let folder: String?
    private var listeners: [SyncClient.Listener] = []
    private let calls = Calls()

    init(cache: Int) {
        var cacheFolder: String?
        var kind = SyncConfiguration.Cache.memoryEager
        if cache == 2 { kind = .memoryLRU(sizeBytes: 1) }
        if cache == 3 {
            let folder = FileManager.default.temporaryDirectory.appending(path: "fuzz-\(UUID())").path
            cacheFolder = folder
            kind = .persistent(folder: folder, sizeBytes: -1)
        }
        folder = cacheFolder
        var configuration = SyncConfiguration(database: SyncClientFuzzing.database, appName: "app", cache: kind)
        configuration.onWarning = { warning in
            precondition(!warning.contains("The cache"), "a server's message made the cache fail: \(warning)")
        }
        configuration.onDamage = { preconditionFailure("damage: \($0)") }
        let queue = DispatchQueue(label: "fuzz")
        do throws(Status) {
            client = try SyncClient(configuration: configuration, datastore: server, credentials: user) { body in
                queue.async(execute: body)
            }
        } catch { preconditionFailure("no client: \(error)") }
    }

    func step(_ choices: inout Choices) {
        switch choices.below(16) {
        case 0: listen(&choices)
        case 1: if !listeners.isEmpty { client.remove(listeners.remove(at: choices.below(listeners.count))) }
        case 2, 3: client.write(mutations(&choices), completion: calls.expect("write"))
        case 4, 5, 6: server.send(choices.listenResponse())
        case 7, 8: for response in choices.snapshot() { server.send(response) }
        case 9, 10: server.send(choices.writeResponse())
        case 11: server.closeListen(choices.status())
        case 12: server.closeWrite(choices.status())
        case 13: server.changeNetwork()
        case 14: call(&choices)
        default: other(&choices)
        }
        // What the step has caused so far has happened.
        let isDone = Awaited<Void>()
        client.namedQuery("") { _ in isDone.set(.success(())) }
        do throws(Status) { try isDone.wait() } catch { preconditionFailure("\(error)") }
    }

    private func mutations(_ choices: inout Choices) -> [Mutation] {
        choices.list(3) { choices in
            let key = ResourcePath(["c", choices.pick(["a", "b", "d", "e"])])
            let field = FieldPath("n")
            switch choices.below(6) {
            case 0: return Mutation(key: key, kind: .delete)
            case 1:
                return Mutation(
                    key: key, kind: .patch(choices.fields(), mask: [field]),
                    transforms: [FieldTransform(path: FieldPath("t"), operation: .requestTime)],
                    precondition: .exists(true))
            case 2:
                return Mutation(
                    key: key, kind: .patch(MapValue(), mask: []),
                    transforms: [
                        FieldTransform(
                            path: field,
                            operation: .increment(choices.pick([.integer(1), .integer(.max), .double(0.5)])))
                    ])
            case 3:
                return Mutation(
                    key: key, kind: .set(MapValue()),
                    transforms: [FieldTransform(path: field, operation: .appendMissingElements([choices.value(3)]))])
            default:
                return Mutation(key: key, kind: .set(MapValue([MapValue.Field(name: "n", value: choices.value(3))])))
            }
        }
    }

    private func query(_ choices: inout Choices) -> ClientQuery {
        let collection = ResourcePath(["c"])
        let number = FieldPath("n")
        let order = [Query.Order(field: number, descending: false)]
        switch choices.below(9) {
        case 0: return ClientQuery(path: collection)
        case 1: return ClientQuery(path: collection, orders: order, limit: 2)
        case 2: return ClientQuery(path: collection, orders: order, limit: 2, limitType: .last)
        case 3: return ClientQuery(path: collection, filters: [.field(number, .greaterThan, .integer(1))])
        case 4: return ClientQuery(path: ResourcePath(["c", "a"]))
        case 5: return ClientQuery(path: ResourcePath(), collectionGroup: "s")
        case 6:
            return ClientQuery(
                path: collection,
                filters: [.or([.field(number, .equal, .integer(1)), .field(number, .arrayContains, .integer(2))])])
        case 7: return ClientQuery(path: collection, limit: 1)
        default:
            return ClientQuery(
                path: collection, orders: [Query.Order(field: number, descending: true)],
                start: ClientQuery.Bound(values: [.integer(3)], isInclusive: true))
        }
    }

    private func listen(_ choices: inout Choices) {
        if listeners.count >= 6 { return }
        let query = query(&choices)
        let options = SyncClient.ListenOptions(
            includesDocumentMetadataChanges: choices.below(2) == 1, includesQueryMetadataChanges: choices.below(2) == 1,
            waitsForSyncWhenOnline: choices.below(4) == 3, source: choices.below(4) == 3 ? .cache : .default)
        let shown = Mutex<(keys: Set<ResourcePath>, isOver: Bool)>(([], false))
        let end = calls.expectEnd()
        listeners.append(
            client.listen(to: query, options: options, onEnd: end) { event in
                shown.withLock { shown in
                    precondition(!shown.isOver, "an event behind an error")
                    guard case .success(let snapshot) = event else {
                        shown.isOver = true
                        return
                    }
                    for change in snapshot.changes {
                        switch change.kind {
                        case .added: precondition(shown.keys.insert(change.document.key).inserted, "added twice")
                        case .removed: precondition(shown.keys.remove(change.document.key) != nil, "removed twice")
                        case .modified, .metadata: precondition(shown.keys.contains(change.document.key), "not there")
                        }
                    }
                    precondition(shown.keys == Set(snapshot.documents.map(\.key)), "other documents")
                    precondition(query.limit.map { shown.keys.count <= $0 } ?? true, "too many documents")
                }
            })
    }

    private func call(_ choices: inout Choices) {
        let kind = choices.below(3)
        server.answer(with: &choices)
        let client = client
        let isDone = calls.expect("call")
        Task {
            do throws(Status) {
                switch kind {
                case 0:
                    _ = try await client.aggregate(
                        ClientQuery(path: ResourcePath(["c"])),
                        [
                            Aggregation(alias: "a", operator: .count(upTo: nil)),
                            Aggregation(alias: "b", operator: .sum(FieldPath("n"))),
                        ])
                case 1: _ = try await client.lookUp([ResourcePath(["c", "a"]), ResourcePath(["c", "b"])])
                default: try await client.commit([Mutation(key: ResourcePath(["c", "a"]), kind: .delete)])
                }
                isDone(nil)
            } catch { isDone(error) }
        }
    }

    private func other(_ choices: inout Choices) {
        switch choices.below(7) {
        case 0: client.disableNetwork(completion: calls.expect("disable"))
        case 1, 2: client.enableNetwork(completion: calls.expect("enable"))
        case 3: user.change(ClientUser(uid: choices.pick([nil, "u"])))
        case 4: client.waitForPendingWrites(completion: calls.expect("wait"))
        case 5:
            let query = query(&choices)
            let isDone = calls.expect("read")
            client.documentsFromCache(query) { _ in isDone(nil) }
        default:
            client.setAutomaticIndexing(true)
            client.setIndexConfiguration(
                #"{"indexes":[{"collectionGroup":"c","queryScope":"COLLECTION","fields":[{"fieldPath":"n","order":"ASCENDING"}]}]}"#,
                completion: calls.expect("indexes"))
        }
    }

    func end() {
        client.terminate(completion: { [calls] in calls.isTerminated.set(.success(())) })
        do throws(Status) { try calls.isTerminated.wait() } catch { preconditionFailure("\(error)") }
        calls.awaitAll()
        if let folder { try? FileManager.default.removeItem(atPath: folder) }
    }
}

/// `@unchecked Sendable`: the condition guards everything.
private final class Calls: @unchecked Sendable {
    private let condition = NSCondition()
    private var open: [Int: String] = [:]
    private var last = 0
    let isTerminated = Awaited<Void>()

    func expect(_ name: String) -> @Sendable (Status?) -> Void {
        let number = condition.withLock { () -> Int in
            last += 1
            open[last] = name
            return last
        }
        return { [self] _ in
            condition.withLock {
                precondition(open.removeValue(forKey: number) != nil, "a \(name) completed twice")
                condition.broadcast()
            }
        }
    }

    /// A listener ends at most once.
    func expectEnd() -> @Sendable () -> Void {
        let isOver = Atomic<Bool>(false)
        return { precondition(!isOver.exchange(true, ordering: .relaxed), "a listener ended twice") }
    }

    func awaitAll() {
        condition.withLock {
            let deadline = Date(timeIntervalSinceNow: 60)
            while !open.isEmpty { precondition(condition.wait(until: deadline), "no completion: \(open.values)") }
        }
    }
}
