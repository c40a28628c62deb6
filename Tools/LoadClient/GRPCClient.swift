import HearthNetwork
import HearthModel

/// gRPC calls over an `HTTP2Client`. Used on the loop's thread, like its connection.
///
/// `@unchecked Sendable`: guarded by the loop's thread.
package final class GRPCClient: @unchecked Sendable {
    package let connection: HTTP2Client

    package init(_ connection: HTTP2Client) { self.connection = connection }

    /// The common part of many calls: created once, sent often.
    package struct Request: Sendable {
        let fields: HTTP2Fields
        let compresses: Bool
    }

    /// - Parameters:
    ///   - path: `/package.Service/Method`.
    ///   - timeoutMilliseconds: sent as `grpc-timeout`; the server enforces it.
    ///   - compresses: request messages are sent gzipped.
    package func request(
        path: String, metadata: [HTTPHeader] = [], timeoutMilliseconds: Int? = nil, compresses: Bool = false
    ) -> Request {
        var fields = HTTP2Fields()
        fields.append(":method", "POST")
        fields.append(":scheme", connection.configuration.isSecure ? "https" : "http")
        fields.append(":authority", connection.configuration.authority)
        fields.append(":path", path)
        fields.append("te", "trailers")
        fields.append("content-type", "application/grpc")
        fields.append("grpc-accept-encoding", "identity,gzip")
        if compresses { fields.append("grpc-encoding", "gzip") }
        if let timeoutMilliseconds {
            fields.append("grpc-timeout", GRPCTimeout.string(milliseconds: timeoutMilliseconds))
        }
        fields.append(metadata)
        return Request(fields: fields, compresses: compresses)
    }

    /// Begins a call of any kind.
    package func open(_ request: Request) -> GRPCClientCall {
        GRPCClientCall(
            stream: connection.open(request.fields, hasBody: true), compresses: request.compresses,
            limits: connection.configuration.limits)
    }

    /// Begins a call of any kind; the parameters are those of `request`.
    package func open(
        path: String, metadata: [HTTPHeader] = [], timeoutMilliseconds: Int? = nil, compresses: Bool = false
    ) -> GRPCClientCall {
        open(
            request(
                path: path, metadata: metadata, timeoutMilliseconds: timeoutMilliseconds, compresses: compresses))
    }

    /// A call with one request message and one response message.
    package func unary(
        _ request: Request, message: [UInt8], _ done: @escaping (Result<[UInt8], Status>) -> Void
    ) {
        let call = open(request)
        var answer: [UInt8]?
        call.onMessage = { answer = $0 }
        call.onStatus = { status in
            if status.code != .ok { return done(.failure(status)) }
            guard let answer else { return done(.failure(.internalError("an answer without a message"))) }
            done(.success(answer))
        }
        call.send(message)
        call.halfClose()
    }

    /// A call with one request message and one response message; the parameters are those of `request`.
    package func unary(
        path: String, metadata: [HTTPHeader] = [], message: [UInt8], timeoutMilliseconds: Int? = nil,
        _ done: @escaping (Result<[UInt8], Status>) -> Void
    ) {
        unary(
            request(path: path, metadata: metadata, timeoutMilliseconds: timeoutMilliseconds), message: message, done)
    }
}
