/// Limits of the wire protocol's client.
enum WireLimits {
    /// UTF-16 units in one frame. The other clients of the protocol split at the same size.
    static let frameUnitsMax = 16_384
    /// Digits of the number that announces the frames of a message.
    static let countDigitsMax = 6
    /// Bytes of one sent message. Source: the size limit of one write from an SDK, "Realtime Database Limits" in
    /// the Firebase documentation.
    static let requestBytesMax = 16 << 20
    /// Bytes of one received message, joined. Source: the size limit of one read, "Realtime Database Limits" in the
    /// Firebase documentation.
    static let messageBytesMax = 256 << 20
}

/// Splits messages into frames. A message that is too long for one frame becomes a frame with the number of pieces,
/// then the pieces.
enum WireFrames {
    static func frames(of string: [UInt8]) -> [[UInt8]] {
        // A string never has more UTF-16 units than bytes.
        if string.count <= WireLimits.frameUnitsMax { return [string] }
        var pieces: [[UInt8]] = []
        var start = 0
        var index = 0
        var units = 0
        while index < string.count {
            let (bytes, width) = size(of: string[index])
            if units + width > WireLimits.frameUnitsMax {
                pieces.append(Array(string[start..<index]))
                start = index
                units = 0
            }
            units += width
            index += bytes
        }
        if pieces.isEmpty { return [string] }
        pieces.append(Array(string[start...]))
        return [Array(String(pieces.count).utf8)] + pieces
    }

    /// Bytes and UTF-16 units of the character that begins with this byte.
    private static func size(of first: UInt8) -> (bytes: Int, units: Int) {
        switch first {
        case 0..<0x80: (1, 1)
        case 0..<0xE0: (2, 1)
        case 0..<0xF0: (3, 1)
        default: (4, 2)
        }
    }
}

/// Joins frames into messages.
struct WireFrameJoiner {
    private var missing = 0
    private var string: [UInt8] = []

    enum Outcome: Equatable {
        case incomplete
        case message([UInt8])
        /// The server violated the protocol or a limit.
        case broken(String)
    }

    mutating func take(_ frame: [UInt8]) -> Outcome {
        if missing == 0 {
            guard let count = Self.count(frame) else { return frame.isEmpty ? .incomplete : .message(frame) }
            missing = count
            return .incomplete
        }
        guard string.count + frame.count <= WireLimits.messageBytesMax else {
            return .broken("the server sent a message of more than \(WireLimits.messageBytesMax) bytes")
        }
        string += frame
        missing -= 1
        guard missing == 0 else { return .incomplete }
        defer { string = [] }
        return .message(string)
    }

    /// A message is an object, and has at least this size.
    private static func count(_ frame: [UInt8]) -> Int? {
        guard !frame.isEmpty, frame.count <= WireLimits.countDigitsMax,
            frame.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") })
        else { return nil }
        return frame.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }
}
