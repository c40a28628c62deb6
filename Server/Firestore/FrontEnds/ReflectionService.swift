import HearthModel
import HearthNetwork
import HearthWire

/// grpc.reflection.v1.ServerReflection, and the same under its older name v1alpha: describes the services and their
/// messages for tools. Source: the gRPC server reflection protocol.
struct ReflectionService {
    struct Request: WireMessage {
        var host = ""
        var fileByFilename: String?
        var fileContainingSymbol: String?
        var allExtensionNumbersOfType: String?
        var listServices: String?

        static let typeName = "grpc.reflection.v1.ServerReflectionRequest"

        mutating func visit<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
            try visitor.string(1, "host", &host)
            try visitor.string(3, "file_by_filename", oneof: "message_request", &fileByFilename)
            try visitor.string(4, "file_containing_symbol", oneof: "message_request", &fileContainingSymbol)
            try visitor.string(6, "all_extension_numbers_of_type", oneof: "message_request", &allExtensionNumbersOfType)
            try visitor.string(7, "list_services", oneof: "message_request", &listServices)
        }
    }

    static let names = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"]

    /// Created at the first request: most servers never need them.
    private static let descriptors = FileDescriptors([
        (FirestoreService.name, FirestoreService.methods), (HealthService.name, HealthService.methods),
    ])

    /// All services that are served, this one included.
    let services: [String]

    func serve(_ call: GRPCCall) {
        call.onMessage = { [weak call] message in
            guard let call else { return }
            do throws(Status) {
                call.send(answer(try Request(protobuf: message), message))
            } catch {
                call.finish(error)
            }
        }
        call.onHalfClose = { [weak call] in call?.finish(.ok) }
    }

    /// ServerReflectionResponse: valid_host 1, original_request 2, file_descriptor_response 4, list_services_response 6,
    /// error_response 7.
    private func answer(_ request: Request, _ original: [UInt8]) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.tag(2, 2)
        writer.lengthDelimited(original)
        if request.listServices != nil {
            nested(6, &writer) { inner in
                for name in services {
                    nested(1, &inner) { service in
                        service.tag(1, 2)
                        service.string(name)
                    }
                }
            }
        } else if let files = files(request) {
            nested(4, &writer) { inner in
                for file in files {
                    inner.tag(1, 2)
                    inner.lengthDelimited(file)
                }
            }
        } else {
            nested(7, &writer) { inner in
                inner.tag(1, 0)
                inner.varint(UInt64(Status.Code.notFound.rawValue))
                inner.tag(2, 2)
                inner.string("There is no such symbol, file or extension.")
            }
        }
        return writer.bytes
    }

    private func files(_ request: Request) -> [[UInt8]]? {
        if let name = request.fileByFilename { return Self.descriptors.file(named: name) }
        if let symbol = request.fileContainingSymbol { return Self.descriptors.file(containing: symbol) }
        return nil
    }

    private func nested(_ number: UInt32, _ writer: inout ProtobufWriter, _ body: (inout ProtobufWriter) -> Void) {
        writer.tag(number, 2)
        let start = writer.beginLength()
        body(&writer)
        writer.endLength(start)
    }
}
