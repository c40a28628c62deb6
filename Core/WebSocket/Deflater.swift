import CZlib

/// Compresses messages for permessage-deflate.
final class Deflater {
    let windowBits: Int
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

    /// Optimises for CPU time, not for the smallest size.
    private static let level: Int32 = 3

    init?(windowBits: Int) {
        self.windowBits = windowBits
        stream.initialize(to: z_stream())
        guard raw_deflate_start(stream, Deflater.level, Int32(windowBits)) == Z_OK else {
            stream.deallocate()
            return nil
        }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    func reset() { deflateReset(stream) }

    /// The message without its tail. Never empty: zlib's output for empty input depends on its previous output.
    func compress(_ message: UnsafeRawBufferPointer) -> [UInt8]? {
        guard let base = message.baseAddress, !message.isEmpty else { return nil }
        stream.pointee.next_in = UnsafeMutablePointer(mutating: base.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(message.count)
        // A flush adds up to six bytes, and the bit buffer may hold a rest.
        let capacity = Int(deflateBound(stream, UInt(message.count))) + 16
        var isDone = false
        var output = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            stream.pointee.next_out = buffer.baseAddress
            stream.pointee.avail_out = UInt32(capacity)
            let code = deflate(stream, Z_SYNC_FLUSH)
            count = capacity - Int(stream.pointee.avail_out)
            isDone = code == Z_OK && stream.pointee.avail_in == 0 && stream.pointee.avail_out > 0
        }
        guard isDone, output.suffix(4).elementsEqual(Inflater.tail) else { return nil }
        output.removeLast(4)
        return output
    }
}
