import CZlib
import HearthModel

/// Compresses a stream piece by piece, for HTTP responses.
///
/// `@unchecked Sendable`: has one owner at a time, possibly on different threads.
package final class GzipStream: @unchecked Sendable {
    private var stream = z_stream()

    package init() throws(Status) {
        // The middle of zlib's range: such responses are made once and sent often.
        guard gzip_deflate_start(&stream, 6) == Z_OK else { throw .internalError("Cannot start compression.") }
    }

    deinit { deflateEnd(&stream) }

    /// - Parameter isLast: ends the stream; no input may follow.
    /// - Returns: the available output; may be empty.
    package func compress(_ input: [UInt8], isLast: Bool = false) throws(Status) -> [UInt8] {
        var input = input
        var output: [UInt8] = []
        let result = input.withUnsafeMutableBufferPointer { bytes -> Int32 in
            stream.next_in = bytes.baseAddress
            stream.avail_in = UInt32(bytes.count)
            var result = Z_OK
            repeat {
                let chunk = [UInt8](unsafeUninitializedCapacity: Self.chunkBytes) { buffer, count in
                    stream.next_out = buffer.baseAddress
                    stream.avail_out = UInt32(Self.chunkBytes)
                    result = deflate(&stream, isLast ? Z_FINISH : Z_NO_FLUSH)
                    count = Self.chunkBytes - Int(stream.avail_out)
                }
                output += chunk
            } while result == Z_OK && stream.avail_out == 0
            return result
        }
        // Z_BUF_ERROR means that there was nothing to do, which is not an error.
        guard result == (isLast ? Z_STREAM_END : Z_OK) || (!isLast && result == Z_BUF_ERROR) else {
            throw .internalError("Compression failed.")
        }
        return output
    }

    private static let chunkBytes = 32 * 1024
}
