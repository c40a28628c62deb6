/// The length prefix of a gRPC message. Source: "gRPC over HTTP2", Length-Prefixed-Message.
package struct GRPCPrefix {
    static let sizeBytes = 5
    /// As a little-endian integer: flag, then the length with its most significant byte first.
    private let packed: UInt64

    package init(isCompressed: Bool, messageBytes: Int) {
        packed = UInt64(isCompressed ? 1 : 0) | UInt64(UInt32(messageBytes).byteSwapped) << 8
    }

    func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        withUnsafeBytes(of: packed.littleEndian) { bytes in
            body(UnsafeRawBufferPointer(rebasing: bytes[..<GRPCPrefix.sizeBytes]))
        }
    }
}
