import Foundation
import HearthModel
import HearthWire

@testable import HearthSync

/// Ends the stream at the request of certain collections: `bad…` at once, `late…` after it has added the target;
/// `long…` never becomes current. All other collections are empty.
final class StrictServer: Datastore, @unchecked Sendable {
    private let lock = NSLock()
    private var asked: [[String]] = []
    /// The requested collections of each stream.
    var requests: [[String]] { lock.withLock { asked } }

    private final class Stream: RequestStream, @unchecked Sendable {
        let server: StrictServer
        let onEvent: @Sendable (StreamEvent<ListenResponse>) -> Void
        var isOver = false
        /// A request was invalid, and no error was sent yet.
        var isSlow = false
        init(_ server: StrictServer, _ onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void) {
            self.server = server
            self.onEvent = onEvent
        }

        func send(_ request: ListenRequest) {
            if isOver { return }
            guard let target = request.addTarget else {
                let removed = TargetChangeMessage(targetChangeType: .remove, targetIds: [request.removeTarget ?? 0])
                return onEvent(.response(ListenResponse(targetChange: removed)))
            }
            let collection = target.query?.structuredQuery?.from.first?.collectionId ?? "?"
            server.lock.withLock { server.asked[server.asked.count - 1].append(collection) }
            if collection.hasPrefix("slow") {
                isSlow = true
                return
            }
            if collection.hasPrefix("long") {
                return onEvent(
                    .response(
                        ListenResponse(
                            targetChange: TargetChangeMessage(targetChangeType: .add, targetIds: [target.targetId]))))
            }
            if collection.hasPrefix("bad") || isSlow {
                isOver = true
                return onEvent(.closed(Status(.invalidArgument, "It can't be decoded.")))
            }
            let time = TimestampMessage(seconds: 10)
            let added = TargetChangeMessage(targetChangeType: .add, targetIds: [target.targetId])
            if collection.hasPrefix("late") {
                isOver = true
                onEvent(.response(ListenResponse(targetChange: added)))
                return onEvent(.closed(Status(.invalidArgument, "It can't be read.")))
            }
            for change in [
                added,
                TargetChangeMessage(
                    targetChangeType: .current, targetIds: [target.targetId], resumeToken: [1], readTime: time),
                TargetChangeMessage(targetChangeType: .noChange, readTime: time),
            ] {
                onEvent(.response(ListenResponse(targetChange: change)))
            }
        }
        func finish() {}
        func cancel() { isOver = true }
    }

    private final class Silent: RequestStream {
        func send(_ request: WriteRequest) {}
        func finish() {}
        func cancel() {}
    }

    func openListen(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void
    ) -> any RequestStream<ListenRequest> {
        lock.withLock { asked.append([]) }
        onEvent(.opened)
        return Stream(self, onEvent)
    }

    func openWrite(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<WriteResponse>) -> Void
    ) -> any RequestStream<WriteRequest> { Silent() }

    func commit(_ request: CommitRequest, headers: RequestHeaders) async throws(Status) -> CommitResponse {
        CommitResponse()
    }
    func batchGetDocuments(
        _ request: BatchGetDocumentsRequest, headers: RequestHeaders
    ) async throws(Status) -> [BatchGetDocumentsResponse] { [] }
    func runAggregationQuery(
        _ request: RunAggregationQueryRequest, headers: RequestHeaders
    ) async throws(Status) -> [RunAggregationQueryResponse] { [] }
    func observeReachability(_ changed: @escaping @Sendable () -> Void) {}
    func shutDown() {}
}
