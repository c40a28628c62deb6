import CZlib

/// Decompresses the messages of permessage-deflate piece by piece, without buffering the input.
final class Inflater {
    enum Failure: Error {
        case malformed
        case tooLarge
    }

    /// zlib's state holds a pointer to it, so it must not move.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 16)
    /// The last byte ended a final block (RFC 7692, 7.2.3.4).
    private var isAfterFinalBlock = false

    /// The end of every message, which is not sent. Source: RFC 7692, 7.2.1.
    static let tail: [UInt8] = [0, 0, 0xFF, 0xFF]

    init?() {
        stream.initialize(to: z_stream())
        // The largest window decodes data of the smaller ones.
        guard raw_inflate_start(stream, 15) == Z_OK else {
            stream.deallocate()
            chunk.deallocate()
            return nil
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
        chunk.deallocate()
    }

    /// Resets the window.
    func reset() {
        inflateReset(stream)
        isAfterFinalBlock = false
    }

    /// - Parameter bytesMax: the final size limit of `output`.
    func inflate(
        _ input: UnsafeRawBufferPointer, into output: inout [UInt8], bytesMax: Int
    ) throws(Failure) {
        guard let base = input.baseAddress, !input.isEmpty else { return }
        isAfterFinalBlock = false
        // zlib does not write to its input; its type is older than `const`.
        stream.pointee.next_in = UnsafeMutablePointer(mutating: base.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(input.count)
        repeat {
            stream.pointee.next_out = chunk.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_out = UInt32(chunk.count)
            let code = CZlib.inflate(stream, Z_NO_FLUSH)
            let produced = chunk.count - Int(stream.pointee.avail_out)
            guard output.count + produced <= bytesMax else { throw .tooLarge }
            output.append(contentsOf: UnsafeRawBufferPointer(rebasing: chunk[..<produced]))
            switch code {
            case Z_OK: break
            case Z_BUF_ERROR where stream.pointee.avail_in == 0: return
            case Z_STREAM_END:
                // A final block does not end the message, and the window stays.
                guard inflateResetKeep(stream) == Z_OK else { throw .malformed }
                isAfterFinalBlock = stream.pointee.avail_in == 0
            default: throw .malformed
            }
        } while stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0
    }

    /// Ends the message, by adding the tail that the peer omits.
    func finishMessage(into output: inout [UInt8], bytesMax: Int) throws(Failure) {
        if isAfterFinalBlock { return }
        try Inflater.tail.withUnsafeBufferPointer { tail throws(Failure) in
            try inflate(UnsafeRawBufferPointer(tail), into: &output, bytesMax: bytesMax)
        }
        // Bit 7: the last byte ended a block.
        guard stream.pointee.data_type & 128 != 0 else { throw .malformed }
    }
}
