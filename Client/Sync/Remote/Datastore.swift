import HearthModel
import HearthWire

/// The network as the sync engine sees it: two kinds of streams and unary calls. `HearthFirestore` implements it over
/// gRPC; the sync spec tests use a fake.
///
/// Streams have no memory: backoff, idle timeout, resumption and tokens belong to the engine (`ManagedStream`). All
/// functions may be called from any thread. Events arrive on a thread of the implementation, in order.
package protocol Datastore: AnyObject, Sendable {
    /// Opens a Listen stream.
    func openListen(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void
    ) -> any RequestStream<ListenRequest>

    /// Opens a Write stream.
    func openWrite(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<WriteResponse>) -> Void
    ) -> any RequestStream<WriteRequest>

    /// One request and one answer.
    func commit(_ request: CommitRequest, headers: RequestHeaders) async throws(Status) -> CommitResponse
    /// One request and many answers, which are returned together in their order.
    func batchGetDocuments(
        _ request: BatchGetDocumentsRequest, headers: RequestHeaders
    ) async throws(Status) -> [BatchGetDocumentsResponse]
    func runAggregationQuery(
        _ request: RunAggregationQueryRequest, headers: RequestHeaders
    ) async throws(Status) -> [RunAggregationQueryResponse]

    /// Reports when the network becomes available or unavailable (a change of the machine's routes or addresses), so
    /// that the engine can end a backoff early. At most one observer.
    func observeReachability(_ changed: @escaping @Sendable () -> Void)

    /// Ends all streams and calls with `CANCELLED` and closes the connections. Nothing is delivered afterwards.
    func shutDown()
}

/// The metadata of a request.
package struct RequestHeaders: Sendable {
    /// `Bearer …` without the word; nil when nobody is signed in.
    package var authorizationToken: String?
    package var appCheckToken: String?
    /// `projects/P/databases/D`: sent as `google-cloud-resource-prefix` and in `x-goog-request-params`.
    package var database: DatabaseName

    package init(database: DatabaseName, authorizationToken: String? = nil, appCheckToken: String? = nil) {
        self.database = database
        self.authorizationToken = authorizationToken
        self.appCheckToken = appCheckToken
    }
}

/// An event of a stream. No event follows `closed`.
package enum StreamEvent<Response: Sendable>: Sendable {
    /// The connection is established and accepts requests. It comes once, before all other events except `closed`.
    case opened
    case response(Response)
    /// The end of the stream for any reason: the server's status, or `UNAVAILABLE` when the connection broke.
    case closed(Status)
}

/// The sending half of a stream.
package protocol RequestStream<Request>: AnyObject, Sendable {
    associatedtype Request: Sendable
    /// Queues a message. It has no effect after the end and never blocks.
    func send(_ request: Request)
    /// Half-closes: no request follows. The server then ends the stream.
    func finish()
    /// Ends the stream at once. No event follows, not even `closed`.
    func cancel()
}
