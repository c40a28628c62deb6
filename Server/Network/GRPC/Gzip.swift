import CZlib
import HearthModel

/// The one compression that gRPC messages use here.
enum Gzip {
    private static let chunkBytes = 32 * 1024

    /// Throws RESOURCE_EXHAUSTED when more than `limitBytes` come out: 1 KB of input can hold 1 MB of zeros.
    static func decompress(_ input: [UInt8], limitBytes: Int) throws(Status) -> [UInt8] {
        var stream = z_stream()
        guard gzip_inflate_start(&stream) == Z_OK else { throw .internalError("cannot start decompression") }
        defer { inflateEnd(&stream) }
        var output: [UInt8] = []
        var input = input
        let result = input.withUnsafeMutableBufferPointer { bytes -> Int32 in
            stream.next_in = bytes.baseAddress
            stream.avail_in = UInt32(bytes.count)
            var result = Z_OK
            while result == Z_OK, output.count <= limitBytes {
                result = appendChunk(to: &output) { pointer in
                    stream.next_out = pointer
                    stream.avail_out = UInt32(chunkBytes)
                    let result = inflate(&stream, Z_NO_FLUSH)
                    return (result, chunkBytes - Int(stream.avail_out))
                }
            }
            return result
        }
        guard output.count <= limitBytes else {
            throw .resourceExhausted("a message is larger than \(limitBytes) bytes after decompression")
        }
        guard result == Z_STREAM_END, stream.avail_in == 0 else {
            throw .internalError("a message is not valid gzip")
        }
        return output
    }

    static func compress(_ input: [UInt8]) -> [UInt8]? {
        var stream = z_stream()
        // Level 1: the aim is less on the wire for little time, not the least.
        guard gzip_deflate_start(&stream, 1) == Z_OK else { return nil }
        defer { deflateEnd(&stream) }
        let bound = Int(deflateBound(&stream, UInt(input.count)))
        var input = input
        var result = Z_OK
        let output = [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
            input.withUnsafeMutableBufferPointer { bytes in
                stream.next_in = bytes.baseAddress
                stream.avail_in = UInt32(bytes.count)
                stream.next_out = buffer.baseAddress
                stream.avail_out = UInt32(bound)
                result = deflate(&stream, Z_FINISH)
            }
            count = bound - Int(stream.avail_out)
        }
        return result == Z_STREAM_END ? output : nil
    }

    private static func appendChunk(
        to output: inout [UInt8], _ fill: (UnsafeMutablePointer<UInt8>?) -> (result: Int32, count: Int)
    ) -> Int32 {
        var result = Z_OK
        let chunk = [UInt8](unsafeUninitializedCapacity: chunkBytes) { buffer, count in
            (result, count) = fill(buffer.baseAddress)
        }
        output.append(contentsOf: chunk)
        return result
    }
}
