import CZlib
import HearthModel

/// The one compression that gRPC messages use here; `GzipInflation` is the other way.
package enum Gzip {
    /// For whoever has a thread to itself; on a loop `InflationQueue` has it done in slices.
    package static func decompress(_ input: [UInt8], limitBytes: Int) throws(Status) -> [UInt8] {
        let inflation = try GzipInflation(input, limitBytes: limitBytes)
        while try !inflation.inflate() {}
        return inflation.output
    }

    package static func compress(_ input: [UInt8]) -> [UInt8]? {
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
}
