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
