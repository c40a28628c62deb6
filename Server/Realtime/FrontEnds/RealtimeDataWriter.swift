import HearthHost
import Glibc
import HearthConcurrency
import HearthModel

/// Writes JSON in pieces. Used by one thread.
package final class RealtimeDataWriter {
    private static let prototype = Array("\"__proto__\"".utf8)

    private let folder: String
    private let reservation: MemoryReservation
    private let memoryBytesMax: Int
    private let sizeBytesMax: Int
    private var memory: [UInt8] = []
    private var file: SpillFile?
    private var cutter = RealtimeFrameCutter()
    private var frameCount = 1
    private var namesPrototype = false
    /// The last bytes of the file: a name may be split between two pieces.
    private var end: [UInt8] = []
    private var sizeBytes = 0

    /// - Parameters:
    ///   - reservation: of the disk space for files.
    ///   - sizeBytesMax: longer output fails with `tooLong`.
    init(
        folder: String, _ reservation: MemoryReservation, memoryBytesMax: Int = Limits.realtimeAnswerMemoryBytesMax,
        sizeBytesMax: Int = Limits.realtimeReadBytesMax
    ) {
        self.folder = folder
        self.reservation = reservation
        self.memoryBytesMax = memoryBytesMax
        self.sizeBytesMax = sizeBytesMax
    }

    static let tooLong = Status.resourceExhausted(
        "Data requested exceeds the maximum size that can be accessed with a single request.")

    /// Writes a piece, and empties it.
    /// - Throws: `tooLong`; UNAVAILABLE when files use too much space already, or cannot be written.
    func write(_ piece: inout [UInt8]) throws(Status) {
        sizeBytes += piece.count
        if sizeBytes > sizeBytesMax { throw Self.tooLong }
        if file == nil, memory.count + piece.count <= memoryBytesMax {
            memory += piece
        } else {
            try append(piece)
        }
        piece.removeAll(keepingCapacity: true)
    }

    private func append(_ piece: [UInt8]) throws(Status) {
        let target: SpillFile
        if let file {
            target = file
        } else {
            target = SpillFile(folder: folder, memoryBytesMax: 0, budget: reservation)
            file = target
            let begun = memory
            memory = []
            if !begun.isEmpty { try append(begun) }
        }
        frameCount += cutter.cuts(in: piece).count
        if !namesPrototype {
            let overlap = Self.prototype.count - 1
            namesPrototype = Self.namesPrototype(end + piece.prefix(overlap)) || Self.namesPrototype(piece)
            end = Array((end + piece.suffix(overlap)).suffix(overlap))
        }
        try target.append(piece)
    }

    static func namesPrototype(_ json: [UInt8]) -> Bool {
        json.withUnsafeBytes { string in
            guard let base = string.baseAddress else { return false }
            var position = 0
            while position + prototype.count <= string.count,
                let found = memchr(base + position + 1, Int32(UInt8(ascii: "_")), string.count - position - 1)
            {
                position = UnsafeRawPointer(found) - base - 1
                if position + prototype.count > string.count { return false }
                if memcmp(base + position, prototype, prototype.count) == 0 { return true }
                position += 1
            }
            return false
        }
    }

    func finish() -> RealtimeData {
        guard let file else { return .memory(memory) }
        return .file(LargeJSON(file, frameCount: frameCount, namesPrototype: namesPrototype))
    }
}
