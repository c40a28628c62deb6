import HearthModel

/// Why a connection is broken off: what came over it can't be what a client of this protocol sends.
struct RealtimeFault: Error, Equatable {
    enum Kind {
        case malformed, tooLarge
        /// The server holds too much already: the client may come again later.
        case busy
    }

    var kind: Kind
    var reason: String

    static let busy = RealtimeFault(kind: .busy, reason: "The server holds too many unfinished messages.")
}

/// Puts the messages of a client together again.
///
/// A message whose text is longer than 16384 UTF-16 units comes as a text with the number of its pieces, and then the
/// pieces. A number is told from a message by its length: a message is an object and never so short. The number 0 announces
/// nothing: it is how clients keep a quiet connection alive. Source: the public SDKs' WebSocket transport.
struct RealtimeFrameJoiner {
    private static let countDigitsMax = 6

    private var piecesLeft = 0
    private var gathered: [UInt8] = []

    /// What the pieces of an unfinished message take.
    var heldBytes: Int { gathered.capacity }

    /// - Parameter text: of one frame.
    /// - Returns: a whole message; nil while pieces are missing, and for a keep-alive.
    mutating func receive(_ text: [UInt8]) throws(RealtimeFault) -> [UInt8]? {
        if piecesLeft > 0 { return try takePiece(text) }
        guard let count = Self.number(text) else {
            if text.count > Limits.realtimeMessageBytesMax { throw Self.tooLarge }
            return text
        }
        if count > Limits.realtimePiecesMax {
            throw RealtimeFault(kind: .tooLarge, reason: "A message has at most \(Limits.realtimePiecesMax) pieces.")
        }
        piecesLeft = count
        return nil
    }

    private mutating func takePiece(_ piece: [UInt8]) throws(RealtimeFault) -> [UInt8]? {
        if gathered.count + piece.count > Limits.realtimeMessageBytesMax { throw Self.tooLarge }
        gathered.append(contentsOf: piece)
        piecesLeft -= 1
        if piecesLeft > 0 { return nil }
        defer { gathered = [] }
        return gathered
    }

    private static let tooLarge = RealtimeFault(
        kind: .tooLarge, reason: "A message has at most \(Limits.realtimeMessageBytesMax) bytes.")

    /// Nil when the text isn't a short number.
    private static func number(_ text: [UInt8]) -> Int? {
        guard !text.isEmpty, text.count <= countDigitsMax else { return nil }
        var number = 0
        for byte in text {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
        }
        return number
    }
}

/// Takes a message apart into the texts of its frames.
enum RealtimeFrameSplitter {
    /// In UTF-16 units, as clients count.
    static let pieceUnitsMax = 16384

    /// - Parameter message: JSON, and an object: a bare number would be taken for a count.
    /// - Returns: the message, or the number of its pieces and these. Characters are not cut in two.
    static func frames(of message: [UInt8]) -> [[UInt8]] {
        assert(message.first == UInt8(ascii: "{"), "a message is an object")
        // UTF-8 never has fewer bytes than UTF-16 has units.
        if message.count <= pieceUnitsMax { return [message] }
        let cuts = message.withUnsafeBufferPointer(cuts)
        if cuts.count == 1 { return [message] }
        var frames = [Array(String(cuts.count).utf8)]
        frames.reserveCapacity(cuts.count + 1)
        var start = 0
        for cut in cuts {
            frames.append(Array(message[start..<cut]))
            start = cut
        }
        return frames
    }

    /// Where the pieces end.
    private static func cuts(_ message: UnsafeBufferPointer<UInt8>) -> [Int] {
        var cutter = RealtimeFrameCutter()
        return cutter.cuts(in: message) + [message.count]
    }
}

/// Finds where a text that comes in parts is cut into frames: wherever the parts end, at the same bytes.
struct RealtimeFrameCutter {
    private var units = 0

    /// - Returns: positions in this part before which a new piece begins. At 0, the one before it ends with the last part.
    mutating func cuts(in part: UnsafeBufferPointer<UInt8>) -> [Int] {
        var cuts: [Int] = []
        for (position, byte) in part.enumerated() where byte & 0xC0 != 0x80 {
            // A character that four bytes encode is a surrogate pair.
            let width = byte >= 0xF0 ? 2 : 1
            if units + width > RealtimeFrameSplitter.pieceUnitsMax {
                cuts.append(position)
                units = 0
            }
            units += width
        }
        return cuts
    }

    mutating func cuts(in part: [UInt8]) -> [Int] { part.withUnsafeBufferPointer { cuts(in: $0) } }
}

/// Makes frames of a text that comes in parts.
struct RealtimePieceFramer {
    private var cutter = RealtimeFrameCutter()
    /// What belongs to the next frame.
    private var begun: [UInt8] = []

    /// - Returns: the frames that are complete.
    mutating func take(_ part: [UInt8]) -> [[UInt8]] {
        var frames: [[UInt8]] = []
        var start = 0
        for cut in cutter.cuts(in: part) {
            frames.append(begun + part[start..<cut])
            begun = []
            start = cut
        }
        begun += part[start...]
        return frames
    }

    /// The last frame.
    mutating func finish() -> [UInt8] {
        defer { self = RealtimePieceFramer() }
        return begun
    }
}
