import HearthModel

/// The reason why a connection is closed: a client of this protocol does not send such input.
package struct RealtimeFault: Error, Equatable {
    enum Kind {
        case malformed, tooLarge
        /// The server holds too much data already: the client may reconnect later.
        case busy
    }

    var kind: Kind
    var reason: String

    static let busy = RealtimeFault(kind: .busy, reason: "The server holds too many unfinished messages.")
}

/// Assembles the messages of a client.
///
/// A message of more than 16384 UTF-16 units is sent as the number of its pieces, followed by the pieces. The length
/// distinguishes a number from a message: a message is an object and never so short. The number 0 announces nothing:
/// clients send it to keep an idle connection open. Source: the public SDKs' WebSocket transport.
///
/// A message of too many bytes isn't stored. It is only scanned for the number of its request, because a client whose
/// connection is closed instead sends it again over each next connection.
struct RealtimeFrameJoiner {
    enum Received: Equatable {
        case message([UInt8])
        /// A request of too many bytes, with its number.
        case tooLarge(request: Int64)
    }

    private static let countDigitsMax = 6
    /// The maximum UTF-8 bytes of a UTF-16 unit, in a piece of whole characters.
    private static let pieceBytesMax = 3 * RealtimeFrameSplitter.pieceUnitsMax

    private var piecesLeft = 0
    private var gathered: [UInt8] = []
    /// Of a message that may become too large.
    private var finder: RequestNumberFinder?
    private var isTooLarge = false

    /// The size of the pieces of an unfinished message.
    var heldBytes: Int { gathered.capacity }

    /// - Parameter string: of one frame.
    /// - Returns: a whole message; nil while pieces are missing, and for a keep-alive.
    mutating func receive(_ string: [UInt8]) throws(RealtimeFault) -> Received? {
        if piecesLeft > 0 { return try takePiece(string) }
        guard let count = Self.number(string) else {
            if string.count > Limits.realtimeMessageBytesMax { throw Self.tooLarge }
            return .message(string)
        }
        if count > Limits.realtimePiecesMax {
            throw RealtimeFault(kind: .tooLarge, reason: "A message has at most \(Limits.realtimePiecesMax) pieces.")
        }
        piecesLeft = count
        isTooLarge = false
        finder = count * Self.pieceBytesMax > Limits.realtimeMessageBytesMax ? RequestNumberFinder() : nil
        return nil
    }

    private mutating func takePiece(_ piece: [UInt8]) throws(RealtimeFault) -> Received? {
        finder?.scan(through: piece)
        piecesLeft -= 1
        if !isTooLarge, gathered.count + piece.count > Limits.realtimeMessageBytesMax {
            isTooLarge = true
            gathered = []
        }
        if isTooLarge {
            // Only messages that SDKs send are waited for.
            guard finder != nil, piece.count <= Self.pieceBytesMax else { throw Self.tooLarge }
        } else {
            gathered.append(contentsOf: piece)
        }
        if piecesLeft > 0 { return nil }
        defer { gathered = [] }
        if !isTooLarge { return .message(gathered) }
        guard let request = finder?.number else { throw Self.tooLarge }
        return .tooLarge(request: request)
    }

    static let tooLarge = RealtimeFault(
        kind: .tooLarge, reason: "A message has at most \(Limits.realtimeMessageBytesMax) bytes.")

    /// Nil when the string isn't a short number.
    private static func number(_ string: [UInt8]) -> Int? {
        guard !string.isEmpty, string.count <= countDigitsMax else { return nil }
        var number = 0
        for byte in string {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
        }
        return number
    }
}

/// Finds the number of a request in a string that isn't stored: `{"t":"d","d":{"r":7,…}}`, with its members in any
/// order.
struct RequestNumberFinder {
    private static let digitsMax = 18
    private static let nameBytesMax = 1

    private(set) var number: Int64?
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    /// The last string at the depth of the request's members, or above; at most as long as the names of interest.
    private var string: [UInt8] = []
    private var isStringWhole = true
    private var isInRequest = false
    private var digits: [UInt8]?

    mutating func scan(through bytes: [UInt8]) {
        if number == nil { bytes.withUnsafeBufferPointer { for byte in $0 { take(byte) } } }
    }

    private mutating func take(_ byte: UInt8) {
        if isInString {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isInString = false
                return
            }
            if string.count < Self.nameBytesMax { string.append(byte) } else { isStringWhole = false }
            return
        }
        switch byte {
        case UInt8(ascii: "\""):
            isInString = true
            isStringWhole = true
            string.removeAll(keepingCapacity: true)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            end()
            depth -= 1
            if depth == 1 { isInRequest = false }
        case UInt8(ascii: ","): end()
        case UInt8(ascii: ":"):
            if depth == 1 { isInRequest = isStringWhole && string == [UInt8(ascii: "d")] }
            if depth == 2, isInRequest, isStringWhole, string == [UInt8(ascii: "r")] { digits = [] }
        case UInt8(ascii: "0")...UInt8(ascii: "9"):
            if let count = digits?.count, count < Self.digitsMax { digits?.append(byte) }
        default: break
        }
    }

    private mutating func end() {
        guard depth == 2, let found = digits else { return }
        number = Int64(String(decoding: found, as: UTF8.self))
        digits = nil
    }
}

/// Splits a message into the strings of its frames.
enum RealtimeFrameSplitter {
    /// In UTF-16 units, as clients count.
    static let pieceUnitsMax = 16384

    /// - Parameter message: JSON, and an object: a bare number would be read as a count.
    /// - Returns: the message, or the number of its pieces and the pieces. No character is split.
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

    /// The ends of the pieces.
    private static func cuts(_ message: UnsafeBufferPointer<UInt8>) -> [Int] {
        var cutter = RealtimeFrameCutter()
        return cutter.cuts(in: message) + [message.count]
    }
}

/// Finds the frame boundaries in a string that arrives in parts. They do not depend on how the parts are divided.
struct RealtimeFrameCutter {
    private var units = 0

    /// - Returns: positions in this part before which a new piece begins. At 0, the previous piece ends with the last
    ///   part.
    mutating func cuts(in part: UnsafeBufferPointer<UInt8>) -> [Int] {
        var cuts: [Int] = []
        for (position, byte) in part.enumerated() where byte & 0xC0 != 0x80 {
            // A character of four bytes is a surrogate pair.
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

/// Makes frames from a string that arrives in parts.
struct RealtimePieceFramer {
    private var cutter = RealtimeFrameCutter()
    /// The beginning of the next frame.
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
