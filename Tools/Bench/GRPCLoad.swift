import CLoad
import HearthLoadClient
import HearthModel
import HearthNetwork
import HearthToolSupport

/// A run of gRPC calls. The generator itself is `Tools/LoadC`, on the calling thread.
struct GRPCLoad {
    let generator: LoadGenerator
    let path: String
    let metadata: [HTTPHeader]

    func run(_ bound: LoadBound, _ requests: any RequestSource) throws(ToolFailure) -> LoadResult {
        var counted = load_result()
        defer { load_clear(&counted) }
        let context = GRPCLoadContext(requests, generator.answers.content)
        withExtendedLifetime(context) {
            withFields { fields in
                generator.host.withCString { host in
                    var settings = settings(bound, context)
                    settings.host = host
                    settings.fields = fields.baseAddress
                    settings.fields_count = fields.count
                    load_run(&settings, &counted)
                }
            }
        }
        if let failure = counted.failure { throw ToolFailure(.unavailable, String(cString: failure)) }
        var result = LoadResult()
        result.count = Int(counted.count)
        result.errors = Int(counted.errors)
        result.all = Int(counted.all)
        result.firstError = counted.error.map { String(cString: $0) }
        result.seconds = counted.seconds
        result.generatorSeconds = counted.processor_seconds
        result.latenciesMicroseconds = Array(UnsafeBufferPointer(start: counted.latencies, count: result.count))
        return result
    }

    private func settings(_ bound: LoadBound, _ context: GRPCLoadContext) -> load_settings {
        var settings = load_settings()
        settings.port = UInt16(truncatingIfNeeded: generator.port)
        settings.connections = UInt32(generator.connections)
        settings.streams = UInt32(generator.streams)
        settings.messages = UInt32(generator.answers.messages)
        settings.message_tag = generator.answers.tag ?? 0
        settings.request = nextRequest
        settings.check = context.content == nil ? nil : isRight
        settings.context = Unmanaged.passUnretained(context).toOpaque()
        settings.requests_max = .max
        switch bound {
        case .seconds(let seconds, let warmUp):
            settings.warm_up_nanoseconds = UInt64(warmUp * 1e9)
            settings.run_nanoseconds = UInt64(seconds * 1e9)
        case .requests(let count): settings.requests_max = UInt64(count)
        }
        return settings
    }

    /// The fields of every request.
    private func withFields(_ body: (UnsafeBufferPointer<load_field>) -> Void) {
        let headers =
            [
                HTTPHeader(":method", "POST"), HTTPHeader(":scheme", "http"),
                HTTPHeader(":authority", HTTP2Client.Configuration.authority(generator.host, generator.port)),
                HTTPHeader(":path", path),
                HTTPHeader("te", "trailers"), HTTPHeader("content-type", "application/grpc"),
                // The generator reads no compressed message.
                HTTPHeader("grpc-accept-encoding", "identity"),
            ] + metadata
        let bytes = headers.flatMap { Array($0.name.utf8) + Array($0.value.utf8) }
        bytes.withUnsafeBufferPointer { bytes in
            guard var next = bytes.baseAddress else { return }
            let fields = headers.map { header in
                let value = next + header.name.utf8.count
                let field = load_field(
                    name: next, name_count: header.name.utf8.count, value: value, value_count: header.value.utf8.count)
                next = value + header.value.utf8.count
                return field
            }
            fields.withUnsafeBufferPointer(body)
        }
    }
}

/// What the functions below are called with.
private final class GRPCLoadContext {
    let requests: any RequestSource
    let content: (@Sendable (UnsafeBufferPointer<UInt8>) -> Bool)?

    init(_ requests: any RequestSource, _ content: (@Sendable (UnsafeBufferPointer<UInt8>) -> Bool)?) {
        self.requests = requests
        self.content = content
    }

    static func from(_ pointer: UnsafeMutableRawPointer?) -> GRPCLoadContext {
        guard let pointer else { preconditionFailure("a load without its context") }
        return Unmanaged<GRPCLoadContext>.fromOpaque(pointer).takeUnretainedValue()
    }
}

private func nextRequest(
    _ context: UnsafeMutableRawPointer?, _ number: UInt64, _ bytes: UnsafeMutablePointer<UnsafePointer<UInt8>?>?
) -> Int {
    let message = GRPCLoadContext.from(context).requests.next(Int(number))
    bytes?.pointee = message.baseAddress
    return message.count
}

private func isRight(_ context: UnsafeMutableRawPointer?, _ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let content = GRPCLoadContext.from(context).content
    return content?(UnsafeBufferPointer(start: bytes, count: count)) ?? true ? 1 : 0
}
