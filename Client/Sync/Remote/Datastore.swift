import HearthModel
import HearthWire

/// The network as the sync engine sees it: two kinds of streams and unary calls. `HearthFirestore` implements it over
/// gRPC; the sync spec tests put a fake in its place.
///
/// Streams have no memory: backing off, idling, resuming and tokens are the engine's (`WatchStream`, `WriteStream`).
/// Everything here may be called from any thread; events arrive on a thread of the implementation, in order.
package protocol Datastore: AnyObject, Sendable {
    /// Opens a Listen stream.
    func openListen(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<ListenResponse>) -> Void
    ) -> any RequestStream<ListenRequest>

    /// Opens a Write stream.
    func openWrite(
        headers: RequestHeaders, onEvent: @escaping @Sendable (StreamEvent<WriteResponse>) -> Void
    ) -> any RequestStream<WriteRequest>

    /// One request, one answer.
    func commit(_ request: CommitRequest, headers: RequestHeaders) async throws(Status) -> CommitResponse
    /// One request, many answers: all of them, in their order.
    func batchGetDocuments(
        _ request: BatchGetDocumentsRequest, headers: RequestHeaders
    ) async throws(Status) -> [BatchGetDocumentsResponse]
    func runAggregationQuery(
        _ request: RunAggregationQueryRequest, headers: RequestHeaders
    ) async throws(Status) -> [RunAggregationQueryResponse]

    /// Tells when the network came back or went (a change of the machine's routes or addresses), so that a backoff
    /// isn't waited out for nothing. At most one observer.
    func observeReachability(_ changed: @escaping @Sendable () -> Void)

    /// Ends all streams and calls with CANCELLED and frees the connections. Nothing is delivered afterwards.
    func shutDown()
}

/// What a request carries besides its message.
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

/// What happens on a stream. After `closed` nothing more comes.
package enum StreamEvent<Response: Sendable>: Sendable {
    /// The connection stands and requests are taken; comes once, before everything else but `closed`.
    case opened
    case response(Response)
    /// The end, for whatever reason: the server's status, or UNAVAILABLE when the connection broke.
    case closed(Status)
}

/// The sending half of a stream.
package protocol RequestStream<Request>: AnyObject, Sendable {
    associatedtype Request: Sendable
    /// Queues a message; does nothing after the end. Never blocks.
    func send(_ request: Request)
    /// Half-closes: no more requests. The server then ends the stream.
    func finish()
    /// Ends the stream at once. No event comes afterwards, not even `closed`.
    func cancel()
}
