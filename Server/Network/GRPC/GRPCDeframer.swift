import HearthModel

/// Splits a stream of bytes into gRPC messages. Pure.
///
/// Source: "gRPC over HTTP2", Length-Prefixed-Message: one byte compressed flag, four bytes length, most significant
/// first.
package struct GRPCDeframer {
    package enum Step: Equatable {
        case needsMore
        case message([UInt8], isCompressed: Bool)
        case failure(Status)
    }

    private let messageBytesMax: Int
    private var prefixCount = 0
    private var flag: UInt8 = 0
    private var length = 0
    /// The incomplete message, when it arrives in several pieces.
    private var partial: [UInt8] = []
    private var failure: Status?

    /// A peer that announces 16 MiB gets memory as it sends them, not before.
    private static let reservedBytesMax = 64 * 1024

    package init(messageBytesMax: Int) { self.messageBytesMax = messageBytesMax }

    /// Whether a message is incomplete.
    var isMidMessage: Bool { prefixCount > 0 }

    /// Bytes of the incomplete message that are held here.
    var heldBytes: Int { partial.count }

    /// Reads input from `position` on, up to the end of one message.
    package mutating func next(_ input: UnsafeRawBufferPointer, _ position: inout Int) -> Step {
        if let failure { return .failure(failure) }
        while prefixCount < GRPCPrefix.sizeBytes {
            guard position < input.count else { return .needsMore }
            let byte = input[position]
            position += 1
            prefixCount += 1
            if prefixCount == 1 { flag = byte } else { length = length << 8 | Int(byte) }
            if prefixCount == GRPCPrefix.sizeBytes, let failure = checkPrefix() { return .failure(failure) }
        }
        let missing = length - partial.count
        let available = min(missing, input.count - position)
        let bytes = UnsafeRawBufferPointer(rebasing: input[position..<(position + available)])
        position += available
        if partial.isEmpty, available == length { return complete([UInt8](bytes)) }
        if partial.isEmpty { partial.reserveCapacity(min(length, GRPCDeframer.reservedBytesMax)) }
        partial.append(contentsOf: bytes)
        return partial.count == length ? complete(partial) : .needsMore
    }

    private mutating func checkPrefix() -> Status? {
        if flag > 1 { failure = .internalError("malformed gRPC frame: the compressed flag is \(flag)") }
        if length > messageBytesMax {
            failure = .resourceExhausted("a message of \(length) bytes is larger than \(messageBytesMax)")
        }
        return failure
    }

    private mutating func complete(_ message: [UInt8]) -> Step {
        let isCompressed = flag == 1
        prefixCount = 0
        length = 0
        partial = []
        return .message(message, isCompressed: isCompressed)
    }
}
