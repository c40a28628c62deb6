import HearthModel
import HearthNetwork
import HearthWire

/// grpc.health.v1.Health: whether the server accepts calls. Source: the gRPC health checking protocol.
struct HealthService {
    struct Request: WireMessage {
        var service = ""

        static let typeName = "grpc.health.v1.HealthCheckRequest"

        mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "service", &service)
        }
    }

    struct Response: WireMessage {
        struct ServingStatus: WireEnum {
            var rawValue: Int32

            init(rawValue: Int32 = 0) {
                self.rawValue = rawValue
            }

            static let typeName = "grpc.health.v1.HealthCheckResponse.ServingStatus"
            static let names: [(number: Int32, name: StaticString)] = [
                (0, "UNKNOWN"), (1, "SERVING"), (2, "NOT_SERVING"), (3, "SERVICE_UNKNOWN"),
            ]
        }

        var status = ServingStatus()

        static let typeName = "grpc.health.v1.HealthCheckResponse"

        mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.enumeration(1, "status", &status)
        }

        static let serving = Response(status: ServingStatus(rawValue: 1))
        static let unknownService = Response(status: ServingStatus(rawValue: 3))
    }

    static let name = "grpc.health.v1.Health"
    static let methods = [
        MethodDescription("Check", Request.self, Response.self),
        MethodDescription("Watch", Request.self, Response.self, serverStreams: true),
    ]

    /// The served services; the empty name means the server as a whole.
    let services: Set<String>

    func check(_ call: GRPCCall) {
        call.unary { message in
            do throws(Status) {
                let request = try Request(protobuf: message)
                guard request.service.isEmpty || services.contains(request.service) else {
                    throw .notFound("unknown service \(request.service)")
                }
                call.send(Response.serving.protobuf())
                call.finish(.ok)
            } catch {
                call.finish(error)
            }
        }
    }

    /// A running server is always serving: one response, and the stream stays open until either side ends it.
    func watch(_ call: GRPCCall) {
        call.onMessage = { [weak call] message in
            guard let call else { return }
            do throws(Status) {
                let request = try Request(protobuf: message)
                let isKnown = request.service.isEmpty || services.contains(request.service)
                call.send((isKnown ? Response.serving : Response.unknownService).protobuf())
            } catch {
                call.finish(error)
            }
        }
        // The client's half-close only means that its one request is complete.
        call.onHalfClose = {}
    }
}
