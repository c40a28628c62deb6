/// The decoded size of a request, estimated by counting its elements without storing any.
package enum ParsedSize {
    /// Arrays grow by doubling, and both copies exist for a moment.
    private static let elementBytes = 96
    /// A write of a commit, a filter of a query: messages are larger than values.
    private static let messageBytes = 512

    package static func ofJSON(_ string: [UInt8]) -> Int {
        var elements = 1
        string.withUnsafeBufferPointer { bytes in
            for byte in bytes {
                elements &+= byte == UInt8(ascii: ",") || byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") ? 1 : 0
            }
        }
        return string.count + elements * elementBytes
    }

    /// A string counts as a message as far as it can be parsed as one, which is seldom far.
    static func ofProtobuf(_ message: [UInt8]) -> Int {
        message.withUnsafeBufferPointer { bytes in
            var walk = ProtobufWalk(bytes)
            walk.run()
            return bytes.count + walk.messages * messageBytes + walk.fields * elementBytes
        }
    }
}

/// Walks through a message of unknown type, and counts its elements.
private struct ProtobufWalk {
    private static let depthMax = 100
    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0
    /// The ends of the messages that contain the position.
    private var ends: [Int] = []
    /// Fields of the request itself that are messages or strings.
    private(set) var messages = 0
    private(set) var fields = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
        ends = [bytes.count]
    }

    mutating func run() {
        while let end = ends.last {
            if position >= end {
                position = end
                ends.removeLast()
            } else if !takeField(before: end) {
                // Not a message.
                position = end
                ends.removeLast()
            }
        }
    }

    private mutating func takeField(before end: Int) -> Bool {
        guard let tag = varint(before: end), tag >> 3 > 0 else { return false }
        fields += 1
        switch tag & 7 {
        case 0: return varint(before: end) != nil
        case 1: position += 8
        case 5: position += 4
        case 2:
            guard let length = varint(before: end), length <= UInt64(end - position) else { return false }
            if ends.count == 1 { messages += 1 }
            if ends.count < Self.depthMax, length > 0 {
                ends.append(position + Int(length))
            } else {
                position += Int(length)
            }
        default: return false
        }
        return position <= end
    }

    private mutating func varint(before end: Int) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < end, shift < 64 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }
}
