import CZlib
import HearthModel

/// Decompresses a message step by step: 16 KB of input may become 16 MB, which takes longer than a tick of a loop.
final class GzipInflation {
    /// The maximum output of one step.
    static let stepBytes = 32 << 10

    private var stream = z_stream()
    private var input: [UInt8]
    private let limitBytes: Int
    private(set) var output: [UInt8] = []

    init(_ input: [UInt8], limitBytes: Int) throws(Status) {
        self.input = input
        self.limitBytes = limitBytes
        guard gzip_inflate_start(&stream) == Z_OK else { throw .internalError("cannot start decompression") }
        stream.avail_in = UInt32(input.count)
    }

    deinit { inflateEnd(&stream) }

    var heldBytes: Int { input.count + output.capacity }

    /// Decompresses the next part.
    /// - Returns: whether `output` is complete.
    /// - Throws: RESOURCE_EXHAUSTED when the output is larger than `limitBytes`, INTERNAL when the input is not gzip.
    func inflate() throws(Status) -> Bool {
        var result = Z_OK
        let taken = input.count - Int(stream.avail_in)
        let chunk = input.withUnsafeMutableBufferPointer { bytes in
            [UInt8](unsafeUninitializedCapacity: Self.stepBytes) { buffer, count in
                stream.next_in = bytes.baseAddress.map { $0 + taken }
                stream.next_out = buffer.baseAddress
                stream.avail_out = UInt32(Self.stepBytes)
                result = CZlib.inflate(&stream, Z_NO_FLUSH)
                count = Self.stepBytes - Int(stream.avail_out)
            }
        }
        if output.isEmpty { output = chunk } else { output.append(contentsOf: chunk) }
        guard output.count <= limitBytes else {
            throw .resourceExhausted("a message is larger than \(limitBytes) bytes after decompression")
        }
        if result == Z_OK { return false }
        guard result == Z_STREAM_END, stream.avail_in == 0 else {
            throw .internalError("a message is not valid gzip")
        }
        return true
    }
}
