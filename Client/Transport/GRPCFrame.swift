import HearthHTTPClient
import HearthModel

enum GRPCFrame {
    /// Source: "gRPC over HTTP2", Length-Prefixed-Message: a byte for compression, and four bytes of length, most
    /// significant first.
    static func prefix(_ count: Int) throws(Status) -> [UInt8] {
        guard let length = UInt32(exactly: count) else {
            throw .resourceExhausted("a message of \(count) bytes is too large for gRPC")
        }
        return [
            0, UInt8(truncatingIfNeeded: length >> 24), UInt8(truncatingIfNeeded: length >> 16),
            UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length),
        ]
    }
}
