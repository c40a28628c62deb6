import HearthModel

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

    /// The limit of a message.
    var messageBytesMax = Limits.realtimeMessageBytesMax
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
            if string.count > messageBytesMax { throw Self.tooLarge }
            return .message(string)
        }
        if count > Limits.realtimePiecesMax {
            throw RealtimeFault(kind: .tooLarge, reason: "A message has at most \(Limits.realtimePiecesMax) pieces.")
        }
        piecesLeft = count
        isTooLarge = false
        finder = count * Self.pieceBytesMax > messageBytesMax ? RequestNumberFinder() : nil
        return nil
    }

    private mutating func takePiece(_ piece: [UInt8]) throws(RealtimeFault) -> Received? {
        finder?.scan(through: piece)
        piecesLeft -= 1
        if !isTooLarge, gathered.count + piece.count > messageBytesMax {
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
