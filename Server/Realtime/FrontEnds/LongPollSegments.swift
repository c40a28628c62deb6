import HearthWire
import HearthHost
import HearthModel

/// A piece of a client's message, as the address of a request contains it.
struct LongPollSegment: Equatable {
    /// Counts the pieces of all messages of the session.
    var number: Int
    /// Of the message to which it belongs.
    var total: Int
    /// A part of the message's base64.
    var string: [UInt8]
}

/// Assembles the messages of a polling client.
///
/// Requests can arrive out of order: pieces are used in the order of their numbers, each once. The public SDK for the
/// web writes URL-safe base64 and pads it with dots.
struct LongPollSegments {
    private var next = 0
    private var early: [Int: LongPollSegment] = [:]
    private var gathered: [UInt8] = []
    private var missing = 0
    private var earlyBytes = 0

    /// The size of the pieces of incomplete messages.
    var heldBytes: Int { earlyBytes + gathered.capacity }

    private static let stringBytesMax = Limits.realtimeMessageBytesMax / 3 * 4 + 4

    /// - Parameter earlyBytesMax: the maximum size of pieces that arrived before one with a lower number.
    /// - Returns: the messages that are complete with this piece, in their order.
    mutating func take(
        _ segment: LongPollSegment, earlyBytesMax: Int = .max
    ) throws(RealtimeFault) -> [[UInt8]] {
        guard segment.total > 0, segment.total <= Limits.longPollSegmentsMax else {
            throw Self.malformed("A message has between 1 and \(Limits.longPollSegmentsMax) pieces.")
        }
        // Sent again.
        guard segment.number >= next else { return [] }
        guard segment.number - next <= Limits.longPollEarlySegmentsMax else {
            throw Self.malformed("Piece \(segment.number) came before piece \(next).")
        }
        earlyBytes += segment.string.count - (early.updateValue(segment, forKey: segment.number)?.string.count ?? 0)
        var messages: [[UInt8]] = []
        while let segment = early.removeValue(forKey: next) {
            next += 1
            earlyBytes -= segment.string.count
            if missing == 0 { missing = segment.total }
            gathered += segment.string
            if gathered.count > Self.stringBytesMax {
                throw RealtimeFault(
                    kind: .tooLarge, reason: "A message has at most \(Limits.realtimeMessageBytesMax) bytes.")
            }
            missing -= 1
            if missing == 0 {
                messages.append(try Self.decode(gathered))
                gathered = []
            }
        }
        if earlyBytes > earlyBytesMax { throw .busy }
        return messages
    }

    private static func decode(_ string: [UInt8]) throws(RealtimeFault) -> [UInt8] {
        var string = string
        while string.last == UInt8(ascii: ".") { string.removeLast() }
        guard let message = string.withUnsafeBytes({ Base64.decode($0) }) else {
            throw malformed("A message isn't base64.")
        }
        // Half of a surrogate pair cannot be encoded; over a WebSocket browsers send U+FFFD for it.
        return String(validating: message, as: UTF8.self) == nil
            ? Array(String(decoding: message, as: UTF8.self).utf8) : message
    }

    private static func malformed(_ reason: String) -> RealtimeFault { RealtimeFault(kind: .malformed, reason: reason) }
}

/// The parameters in the address of a polling client's request.
struct LongPollParameters {
    var begins = false
    var isFrame = false
    var isGoodbye = false
    var session: String?
    var password: String?
    /// The suffix of the names of the functions that the answer calls.
    var callback: String?
    var segments: [LongPollSegment] = []

    /// - Throws: INVALID_ARGUMENT when it cannot be read.
    init(_ query: String?) throws(Status) {
        guard let parameters = URLCoding.parameters(query) else {
            throw .invalidArgument("The parameters of the address can't be decoded.")
        }
        var totals: [String: Int] = [:]
        var numbers: [String: Int] = [:]
        var order: [(index: String, string: [UInt8])] = []
        for (name, value) in parameters {
            switch name {
            case "start": begins = value == "t"
            case "dframe": isFrame = value == "t"
            case "disconn": isGoodbye = value == "t"
            case "id": session = value
            case "pw": password = value
            case "cb":
                // It becomes part of a script.
                guard value.utf8.count <= 20, value.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
                    throw .invalidArgument("cb must be a number")
                }
                callback = value
            default:
                if let index = Self.index(name, behind: "seg") {
                    numbers[index] = try Self.number(value)
                } else if let index = Self.index(name, behind: "ts") {
                    totals[index] = try Self.number(value)
                } else if let index = Self.index(name, behind: "d") {
                    order.append((index, Array(value.utf8)))
                }
            }
        }
        for (index, string) in order {
            guard let number = numbers[index], let total = totals[index] else {
                throw .invalidArgument("d\(index) needs seg\(index) and ts\(index)")
            }
            segments.append(LongPollSegment(number: number, total: total, string: string))
        }
    }

    private static func index(_ name: String, behind prefix: String) -> String? {
        guard name.hasPrefix(prefix) else { return nil }
        let index = name.dropFirst(prefix.count)
        let isNumber = !index.isEmpty && index.utf8.count <= 4 && index.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
        return isNumber ? String(index) : nil
    }

    private static func number(_ string: String) throws(Status) -> Int {
        guard string.utf8.count <= 15, let number = Int(string), number >= 0 else {
            throw .invalidArgument("\"\(string)\" is not a number of pieces")
        }
        return number
    }
}
