import CZlib
import HearthModel

/// The only supported compression of gRPC messages; `GzipInflation` decompresses.
package enum Gzip {
    /// For callers on a thread of their own; on a loop `InflationQueue` does it in slices.
    package static func decompress(_ input: [UInt8], limitBytes: Int) throws(Status) -> [UInt8] {
        let inflation = try GzipInflation(input, limitBytes: limitBytes)
        while try !inflation.inflate() {}
        return inflation.output
    }

    package static func compress(_ input: [UInt8]) -> [UInt8]? {
        var stream = z_stream()
        // Level 1: the aim is a smaller message for little CPU time, not the smallest message.
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
}
