import CNghttp2

/// The fields of nearly every gRPC response: created once, never copied, never freed.
struct HTTP2StaticFields: @unchecked Sendable {
    // `@unchecked Sendable`: immutable after creation.
    let pointer: UnsafePointer<nghttp2_nv>
    let count: Int

    init(_ fields: [(String, String)]) {
        let pointer = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: fields.count)
        for (position, field) in fields.enumerated() {
            let name = HTTP2StaticFields.permanent(field.0)
            let value = HTTP2StaticFields.permanent(field.1)
            pointer[position] = http2_static_field(name.baseAddress, name.count, value.baseAddress, value.count)
        }
        self.pointer = UnsafePointer(pointer)
        count = fields.count
    }

    private static func permanent(_ string: String) -> UnsafeBufferPointer<UInt8> {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, string.utf8.count))
        _ = copy.initialize(from: string.utf8)
        return UnsafeBufferPointer(rebasing: copy[..<string.utf8.count])
    }

    static let grpcHead = HTTP2StaticFields([
        (":status", "200"), ("content-type", "application/grpc"), ("grpc-accept-encoding", "identity,gzip"),
    ])
    static let grpcHeadGzip = HTTP2StaticFields([
        (":status", "200"), ("content-type", "application/grpc"), ("grpc-encoding", "gzip"),
        ("grpc-accept-encoding", "identity,gzip"),
    ])
    static let grpcOK = HTTP2StaticFields([("grpc-status", "0")])
}
