import HearthWire
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
