import HearthModel
import HearthWire

@testable import HearthSync

/// The server of the spec tests: it opens streams at once, records requests, and sends only the messages of the test.
///
/// It is used on the worker queue, and by the test while that queue is idle.
final class SpecBackend: Datastore, @unchecked Sendable {
    struct ActiveTarget {
        var message: TargetMessage
        var label: String?
    }

    private var watch: (@Sendable (StreamEvent<ListenResponse>) -> Void)?
    private var write: (@Sendable (StreamEvent<WriteResponse>) -> Void)?
    fileprivate(set) var activeTargets: [Int32: ActiveTarget] = [:]
    fileprivate(set) var watchRequestCount = 0
    fileprivate(set) var writeRequestCount = 0
    fileprivate var isHandshakeDone = false
    /// Writes without an answer.
    fileprivate(set) var sentWrites: [WriteRequest] = []

    var isWatchOpen: Bool { watch != nil }

    func openListen(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void
    ) -> any RequestStream<ListenRequest> {
        precondition(watch == nil, "one watch stream at a time")
        watch = onEvent
        onEvent(.opened)
        return Stream<ListenRequest>(onSend: { [unowned self] in take($0) }, onEnd: { [unowned self] in endWatch() })
    }

    func openWrite(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<WriteResponse>) -> Void
    ) -> any RequestStream<WriteRequest> {
        precondition(write == nil, "one write stream at a time")
        write = onEvent
        isHandshakeDone = false
        onEvent(.opened)
        return Stream<WriteRequest>(onSend: { [unowned self] in take($0) }, onEnd: { [unowned self] in endWrite() })
    }

    private func take(_ request: ListenRequest) {
        watchRequestCount += 1
        if let target = request.addTarget {
            activeTargets[target.targetId] = ActiveTarget(message: target, label: request.labels["goog-listen-tags"])
        } else if let targetID = request.removeTarget {
            activeTargets[targetID] = nil
        }
    }

    private func take(_ request: WriteRequest) {
        writeRequestCount += 1
        if !isHandshakeDone {
            isHandshakeDone = true
            write?(.response(WriteResponse(streamToken: Array("token".utf8))))
        } else if !request.writes.isEmpty {
            sentWrites.append(request)
        }
    }

    private func endWatch() {
        watch = nil
        activeTargets = [:]
    }

    private func endWrite() {
        write = nil
        sentWrites = []
    }

    // MARK: Messages of the test

    func say(_ response: ListenResponse) throws {
        guard let watch else { throw SpecFailure("The watch stream isn't open.") }
        watch(.response(response))
    }

    func closeWatch(_ status: Status) throws {
        guard let watch else { throw SpecFailure("The watch stream isn't open.") }
        endWatch()
        watch(.closed(status))
    }

    func dropTarget(_ targetID: Int32) throws {
        if activeTargets.removeValue(forKey: targetID) == nil {
            throw SpecFailure("Target \(targetID) isn't listened to.")
        }
    }

    func takeWrite() throws -> WriteRequest {
        if sentWrites.isEmpty { throw SpecFailure("No write was sent.") }
        return sentWrites.removeFirst()
    }

    func answerWrite(_ response: WriteResponse) throws {
        guard let write else { throw SpecFailure("The write stream isn't open.") }
        write(.response(response))
    }

    func failWrite(_ status: Status) throws {
        guard let write else { throw SpecFailure("The write stream isn't open.") }
        endWrite()
        write(.closed(status))
    }

    // MARK: Not used by the tests

    func commit(_ request: CommitRequest, headers: RequestHeaders) async throws(Status) -> CommitResponse {
        throw .unimplemented("commit")
    }

    func batchGetDocuments(
        _ request: BatchGetDocumentsRequest, headers: RequestHeaders
    ) async throws(Status) -> [BatchGetDocumentsResponse] { throw .unimplemented("batchGetDocuments") }

    func runAggregationQuery(
        _ request: RunAggregationQueryRequest, headers: RequestHeaders
    ) async throws(Status) -> [RunAggregationQueryResponse] { throw .unimplemented("runAggregationQuery") }

    func observeReachability(_ changed: @escaping @Sendable () -> Void) {}
    func shutDown() {}
}

private final class Stream<Request: Sendable>: RequestStream, @unchecked Sendable {
    private let onSend: (Request) -> Void
    private let onEnd: () -> Void
    private var isEnded = false

    init(onSend: @escaping (Request) -> Void, onEnd: @escaping () -> Void) {
        self.onSend = onSend
        self.onEnd = onEnd
    }

    func send(_ request: Request) { if !isEnded { onSend(request) } }
    func finish() { cancel() }

    func cancel() {
        if isEnded { return }
        isEnded = true
        onEnd()
    }
}

/// A user that the test selects.
final class SpecCredentials: CredentialsProvider, @unchecked Sendable {
    private(set) var user: ClientUser
    private var changed: (@Sendable (ClientUser) -> Void)?

    init(_ user: ClientUser) { self.user = user }

    func token() async throws(Status) -> (user: ClientUser, token: String?) { (user, nil) }
    private(set) var invalidations = 0
    func invalidateToken() { invalidations += 1 }

    func observeUser(_ changed: (@Sendable (ClientUser) -> Void)?) {
        self.changed = changed
        changed?(user)
    }

    func change(_ user: ClientUser) {
        self.user = user
        changed?(user)
    }
}

/// A difference from the test's expectation.
struct SpecFailure: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}
