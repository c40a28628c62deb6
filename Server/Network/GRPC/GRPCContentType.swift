enum GRPCContentType {
    /// `application/grpc`, `application/grpc+proto`, `application/grpc;…`, but not gRPC-Web, which is handled as HTTP.
    static func matches(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= 16 else { return false }
        if !UnsafeRawBufferPointer(rebasing: bytes[..<16]).equals("application/grpc") {
            // Media types are case-insensitive; the copy is made only for the rare client that uses upper case.
            let string = String(decoding: bytes[..<16], as: UTF8.self)
            guard string.lowercased() == "application/grpc" else { return false }
        }
        guard bytes.count > 16 else { return true }
        return bytes[16] == UInt8(ascii: "+") || bytes[16] == UInt8(ascii: ";") || bytes[16] == UInt8(ascii: " ")
    }

    static func matches(_ string: String) -> Bool {
        var string = string
        return string.withUTF8 { matches(UnsafeRawBufferPointer($0)) }
    }
}
