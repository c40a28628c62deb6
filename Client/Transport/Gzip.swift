import CZlib
import HearthHTTPClient
import HearthModel

/// The only gRPC message compression that is announced to servers.
package enum Gzip {
    private static let chunkBytes = 64 << 10

    /// - Throws: RESOURCE_EXHAUSTED when the output is larger than `limitBytes`, since small input can have large
    ///   output; INTERNAL when the input is not gzip.
    static func decompress(_ input: [UInt8], limitBytes: Int) throws(Status) -> [UInt8] {
        var stream = z_stream()
        guard gzip_inflate_start(&stream) == Z_OK else { throw .internalError("cannot start decompression") }
        defer { inflateEnd(&stream) }
        var output: [UInt8] = []
        var code = Z_OK
        var input = input
        input.withUnsafeMutableBufferPointer { bytes in
            stream.next_in = bytes.baseAddress
            stream.avail_in = UInt32(bytes.count)
            while code == Z_OK, output.count <= limitBytes {
                output += [UInt8](unsafeUninitializedCapacity: chunkBytes) { buffer, count in
                    stream.next_out = buffer.baseAddress
                    stream.avail_out = UInt32(chunkBytes)
                    code = inflate(&stream, Z_NO_FLUSH)
                    count = chunkBytes - Int(stream.avail_out)
                }
            }
        }
        guard output.count <= limitBytes else {
            throw .resourceExhausted("a received message is larger than \(limitBytes) bytes after decompression")
        }
        guard code == Z_STREAM_END, stream.avail_in == 0 else {
            throw .internalError("a received message is not valid gzip")
        }
        return output
    }
}
