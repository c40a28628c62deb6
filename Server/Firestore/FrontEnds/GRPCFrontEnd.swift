import HearthRules
import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthWire

/// Handles gRPC calls to the services of this server.
package struct GRPCFrontEnd: GRPCHandler {
    /// Handles one complete request of a unary or server-streaming method.
    typealias Method = @Sendable (_ message: [UInt8], _ call: any ServiceCall) throws(Status) -> Void

    /// By path: the handler of a call, and its method in the metrics.
    private let methods: [String: (serve: Method, observed: RequestMetrics.Method)]
    /// Methods that handle the gRPC call itself.
    private let streams: [String: @Sendable (GRPCCall) -> Void]
    private let observer: RequestObserver
    private let authenticator: Authenticator
    private let large: LargeRequests

    package init(_ service: FirestoreService, admin: AdminService, observer: RequestObserver) {
        self.observer = observer
        authenticator = service.authenticator
        large = service.large
        var methods: [String: (serve: Method, observed: RequestMetrics.Method)] = [:]
        for (path, method) in Self.methods(service) { methods[path] = (method, RequestMetrics.Method(path: path)) }
        for method in AdminMethods.all { methods[method.path] = (Self.carry(method, admin, service.access), .admin) }
        self.methods = methods
        streams = Self.introspection().merging(Self.streams(service, observer)) { $1 }
    }

    /// A method on encoded messages, which responds from any thread; for administrators only.
    private static func carry(
        _ method: any AnyAdminMethod, _ admin: AdminService, _ access: AccessControl
    ) -> Method {
        { bytes, call throws(Status) in
            let permit: AdminService.Permit = { resource, effect throws(Status) in
                try access.requireAdministrator(call.identity, of: resource, effect)
            }
            try method.serve(bytes, admin, permit) { result in
                call.onLoop {
                    switch result {
                    case .success(let answer): call.respond(answer)
                    case .failure(let status): call.finish(status)
                    }
                }
            }
        }
    }

    package func begin(_ call: GRPCCall) {
        guard let method = methods[call.path] else {
            if let stream = streams[call.path] { return stream(call) }
            return call.finish(.unimplemented("Method \(call.path.dropFirst()) is unimplemented"))
        }
        let authorization = call.firstValue("authorization")
        if let identity = authenticator.known(authorization) { return serve(method, call, identity) }
        authenticator.identify(call, authorization) { [self] result in
            switch result {
            case .success(let identity): serve(method, call, identity)
            case .failure(let status):
                let observation = observer.begin(method.observed, .grpc, remote: call.remoteAddress)
                GRPCServiceCall(call, .nobody, observation).finish(status)
            }
        }
    }

    private func serve(
        _ method: (serve: Method, observed: RequestMetrics.Method), _ call: GRPCCall, _ identity: Identity
    ) {
        let observation = observer.begin(method.observed, .grpc, remote: call.remoteAddress)
        let carried = GRPCServiceCall(call, identity, observation)
        call.identified(carried.requester)
        call.unary { [large, method = method.serve] message in
            do throws(Status) {
                if let deadline = call.deadline, deadline <= EventLoop.monotonicNanoseconds() {
                    throw Status(.deadlineExceeded, "The deadline has passed before the call was begun.")
                }
                try large.run(message, carried, method)
            } catch {
                carried.finish(error)
            }
        }
    }

    /// Health and reflection.
    private static func introspection() -> [String: @Sendable (GRPCCall) -> Void] {
        let served = [FirestoreService.name, HealthService.name]
        let health = HealthService(services: Set(served))
        let reflection = ReflectionService(services: served + ReflectionService.names)
        var streams: [String: @Sendable (GRPCCall) -> Void] = [
            "/\(HealthService.name)/Check": { health.check($0) }, "/\(HealthService.name)/Watch": { health.watch($0) },
        ]
        for name in ReflectionService.names { streams["/\(name)/ServerReflectionInfo"] = { reflection.serve($0) } }
        return streams
    }

    /// The methods of Firestore that have a stream of requests.
    private static func streams(
        _ service: FirestoreService, _ observer: RequestObserver
    ) -> [String: @Sendable (GRPCCall) -> Void] {
        func carry(_ name: String, _ serve: @escaping @Sendable (any StreamCall) -> Void) -> (
            String, @Sendable (GRPCCall) -> Void
        ) {
            let path = "/\(FirestoreService.name)/\(name)"
            let method = RequestMetrics.Method(path: path)
            return (
                path,
                { call in
                    service.authenticator.identify(call, call.firstValue("authorization")) { result in
                        let observation = observer.begin(method, .grpc, remote: call.remoteAddress)
                        switch result {
                        case .success(let identity):
                            let carried = GRPCServiceCall(call, identity, observation)
                            call.identified(carried.requester)
                            serve(carried)
                        case .failure(let status): GRPCServiceCall(call, .nobody, observation).finish(status)
                        }
                    }
                }
            )
        }
        return Dictionary(uniqueKeysWithValues: [
            carry("Listen") { _ = ListenStream($0, service) }, carry("Write") { _ = WriteStream($0, service) },
        ])
    }

    private static func methods(_ service: FirestoreService) -> [String: Method] {
        let prefix = "/google.firestore.v1.Firestore/"
        return [
            prefix + "GetDocument": { bytes, call throws(Status) in
                service.getDocument(try GetDocumentRequest(protobuf: bytes), call)
            },
            prefix + "ListDocuments": { bytes, call throws(Status) in
                service.listDocuments(try ListDocumentsRequest(protobuf: bytes), call)
            },
            prefix + "CreateDocument": { bytes, call throws(Status) in
                service.createDocument(
                    try CreateDocumentRequest(protobuf: bytes), sizeBytes: bytes.count, call)
            },
            prefix + "UpdateDocument": { bytes, call throws(Status) in
                service.updateDocument(
                    try UpdateDocumentRequest(protobuf: bytes), sizeBytes: bytes.count, call)
            },
            prefix + "DeleteDocument": { bytes, call throws(Status) in
                service.deleteDocument(
                    try DeleteDocumentRequest(protobuf: bytes), sizeBytes: bytes.count, call)
            },
            prefix + "BatchGetDocuments": { bytes, call throws(Status) in
                service.batchGetDocuments(try BatchGetDocumentsRequest(protobuf: bytes), call)
            },
            prefix + "BeginTransaction": { bytes, call throws(Status) in
                service.beginTransaction(try BeginTransactionRequest(protobuf: bytes), call)
            },
            prefix + "Commit": { bytes, call throws(Status) in
                service.commit(try CommitRequest(protobuf: bytes), sizeBytes: bytes.count, call)
            },
            prefix + "Rollback": { bytes, call throws(Status) in
                service.rollback(try RollbackRequest(protobuf: bytes), call)
            },
            prefix + "RunQuery": { bytes, call throws(Status) in
                service.runQuery(try RunQueryRequest(protobuf: bytes), call)
            },
            prefix + "RunAggregationQuery": { bytes, call throws(Status) in
                service.runAggregationQuery(try RunAggregationQueryRequest(protobuf: bytes), call)
            },
            prefix + "PartitionQuery": { bytes, call throws(Status) in
                service.partitionQuery(try PartitionQueryRequest(protobuf: bytes), call)
            },
            prefix + "ListCollectionIds": { bytes, call throws(Status) in
                service.listCollectionIds(try ListCollectionIdsRequest(protobuf: bytes), call)
            },
            prefix + "BatchWrite": { bytes, call throws(Status) in
                service.batchWrite(try BatchWriteRequest(protobuf: bytes), sizeBytes: bytes.count, call)
            },
            prefix + "ExecutePipeline": { _, call in service.executePipeline(call) },
        ]
    }
}

extension Authenticator {
    /// Calls `done` with the caller's identity: within this method, or later; until then the messages of the call wait.
    fileprivate func identify(
        _ call: GRPCCall, _ authorization: String?, _ done: @escaping @Sendable (Result<Identity, Status>) -> Void
    ) {
        let waiting = Waiting()
        identify(authorization, on: call.loop) { result in
            waiting.isOver = true
            // The client may have disconnected meanwhile.
            if call.isFinished { return }
            done(result)
            if waiting.hasBegun { call.resumeReading() }
        }
        if waiting.isOver { return }
        waiting.hasBegun = true
        call.pauseReading()
    }

    /// Belongs to the call's loop.
    private final class Waiting: @unchecked Sendable {
        var isOver = false
        var hasBegun = false
    }
}

extension FirestoreService {
    static let name = "google.firestore.v1.Firestore"

    /// The service's methods for reflection.
    static let methods = [
        MethodDescription("GetDocument", GetDocumentRequest.self, DocumentMessage.self),
        MethodDescription("ListDocuments", ListDocumentsRequest.self, ListDocumentsResponse.self),
        MethodDescription("UpdateDocument", UpdateDocumentRequest.self, DocumentMessage.self),
        MethodDescription("DeleteDocument", DeleteDocumentRequest.self, EmptyMessage.self),
        MethodDescription(
            "BatchGetDocuments", BatchGetDocumentsRequest.self, BatchGetDocumentsResponse.self, serverStreams: true),
        MethodDescription("BeginTransaction", BeginTransactionRequest.self, BeginTransactionResponse.self),
        MethodDescription("Commit", CommitRequest.self, CommitResponse.self),
        MethodDescription("Rollback", RollbackRequest.self, EmptyMessage.self),
        MethodDescription("RunQuery", RunQueryRequest.self, RunQueryResponse.self, serverStreams: true),
        MethodDescription(
            "ExecutePipeline", ExecutePipelineRequest.self, ExecutePipelineResponse.self, serverStreams: true),
        MethodDescription(
            "RunAggregationQuery", RunAggregationQueryRequest.self, RunAggregationQueryResponse.self,
            serverStreams: true),
        MethodDescription("PartitionQuery", PartitionQueryRequest.self, PartitionQueryResponse.self),
        MethodDescription(
            "Write", WriteRequest.self, WriteResponse.self, clientStreams: true, serverStreams: true),
        MethodDescription(
            "Listen", ListenRequest.self, ListenResponse.self, clientStreams: true, serverStreams: true),
        MethodDescription("ListCollectionIds", ListCollectionIdsRequest.self, ListCollectionIdsResponse.self),
        MethodDescription("BatchWrite", BatchWriteRequest.self, BatchWriteResponse.self),
        MethodDescription("CreateDocument", CreateDocumentRequest.self, DocumentMessage.self),
    ]

    /// Pipelines belong to the Enterprise edition; clients of the Standard edition know this error.
    func executePipeline(_ call: any ServiceCall) {
        call.finish(.failedPrecondition("Pipeline queries are only allowed on ENTERPRISE mode databases."))
    }
}

/// A gRPC call as the service sees it. `@unchecked Sendable`: belongs to the call's loop.
private final class GRPCServiceCall: StreamCall, @unchecked Sendable {
    private let call: GRPCCall
    let identity: Identity
    let requester: Requester
    let onceValues: [String]
    let triggersValues: [String]
    let cancellation = Cancellation()
    /// Nil when the call has ended.
    private var observation: RequestObserver.Observation?

    init(_ call: GRPCCall, _ identity: Identity, _ observation: RequestObserver.Observation) {
        self.call = call
        self.identity = identity
        requester = identity.requester(at: call.remoteAddress, connection: call.connectionNumber)
        onceValues =
            call.firstValue(OnceHeader.name) == nil
            ? [] : call.metadata.filter { $0.name == OnceHeader.name }.map(\.value)
        triggersValues =
            call.firstValue(TriggersHeader.name) == nil
            ? [] : call.metadata.filter { $0.name == TriggersHeader.name }.map(\.value)
        self.observation = observation
        // The end of the call, which each of them has, frees this closure.
        call.onCancel = { [self] in
            cancellation.cancel()
            observed(Status(.cancelled, "The client has disconnected."))
            let onCancel = onCancel
            self.onCancel = nil
            onCancel?()
        }
    }

    var onCancel: (() -> Void)?

    var onMessage: (([UInt8]) -> Void)? {
        get { call.onMessage }
        set { call.onMessage = newValue }
    }

    var onHalfClose: (() -> Void)? {
        get { call.onHalfClose }
        set { call.onHalfClose = newValue }
    }

    var onFault: ((Status) -> Void)? {
        get { call.onFault }
        set { call.onFault = newValue }
    }

    func pauseReading() { call.pauseReading() }
    func resumeReading() { call.resumeReading() }

    private func observed(_ status: Status) {
        observation?.end(status, on: loop)
        observation = nil
    }

    var loop: EventLoop { call.loop }
    var format: MessageFormat { .protobuf }
    var isFinished: Bool { call.isFinished || cancellation.isCancelled }

    var onWritable: (() -> Void)? {
        get { call.onWritable }
        set { call.onWritable = newValue }
    }

    func send(_ message: [UInt8]) -> Bool { call.send(message) }
    func send(_ messages: MessageBatch) -> Bool { call.send(messages) }

    func finish(_ status: Status) {
        observed(status)
        onCancel = nil
        call.finish(status, trailers: TriggersHeader.acknowledgement(of: triggersValues))
    }
}
