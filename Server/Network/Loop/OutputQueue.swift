import HearthConcurrency

/// Response bytes that wait to be sent: the handler's pieces, never joined.
package struct OutputQueue {
    package init() {}

    private struct Piece {
        /// The 5 bytes before a gRPC message, stored separately so that the message needs no copy.
        var prefix: GRPCPrefix?
        var bytes: [UInt8]

        var count: Int { bytes.count + (prefix == nil ? 0 : GRPCPrefix.sizeBytes) }
    }

    // Usually there is one piece, and then no array is needed.
    private var first: Piece?
    private var rest: [Piece] = []
    private var restStart = 0
    /// The number of bytes of `first` that are sent.
    private var offset = 0
    package private(set) var count = 0

    package var isEmpty: Bool { count == 0 }

    package mutating func append(_ bytes: [UInt8], prefix: GRPCPrefix? = nil) {
        let piece = Piece(prefix: prefix, bytes: bytes)
        guard piece.count > 0 else { return }
        count += piece.count
        if first == nil { first = piece } else { rest.append(piece) }
    }

    /// Moves `length` bytes, which must be available, to memory with enough capacity.
    mutating func move(_ length: Int, into scratch: OutputScratch) throws(BrokenInvariant) {
        try scratch.append(length) { memory throws(BrokenInvariant) in try move(length, to: memory) }
    }

    /// Moves `length` bytes, which must be available, into memory of this size.
    package mutating func move(_ length: Int, to memory: UnsafeMutableRawPointer) throws(BrokenInvariant) {
        guard length <= count else { throw BrokenInvariant("the queue has the output that is moved") }
        var destination = memory
        var remaining = length
        while remaining > 0, let piece = first {
            var moved = 0
            if let prefix = piece.prefix, offset < GRPCPrefix.sizeBytes {
                prefix.withBytes { bytes in
                    moved = min(remaining, GRPCPrefix.sizeBytes - offset)
                    if let base = bytes.baseAddress { destination.copyMemory(from: base + offset, byteCount: moved) }
                }
            } else {
                let start = offset - (piece.prefix == nil ? 0 : GRPCPrefix.sizeBytes)
                moved = min(remaining, piece.bytes.count - start)
                piece.bytes.withUnsafeBytes { bytes in
                    if let base = bytes.baseAddress { destination.copyMemory(from: base + start, byteCount: moved) }
                }
            }
            destination += moved
            remaining -= moved
            offset += moved
            if offset == piece.count { dropFirst() }
        }
        count -= length
    }

    package mutating func removeAll() { self = OutputQueue() }

    private mutating func dropFirst() {
        offset = 0
        guard restStart < rest.count else {
            first = nil
            rest = []
            restStart = 0
            return
        }
        first = rest[restStart]
        rest[restStart] = Piece(bytes: [])
        restStart += 1
        // Remove the sent part at intervals, at a constant cost per piece.
        if restStart > 64 && restStart * 2 > rest.count {
            rest.removeFirst(restStart)
            restStart = 0
        }
    }
}
