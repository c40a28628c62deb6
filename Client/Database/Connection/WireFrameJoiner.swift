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
