import Synchronization

/// A message that a server sends to many clients: framed once, compressed at most once.
package final class SharedWebSocketMessage: Sendable {
    let opcode: WebSocketOpcode
    let plainFrame: [UInt8]
    let payloadBytes: Int
    /// For the full window; empty when compression does not make it smaller.
    private let compressed = Mutex<[UInt8]?>(nil)

    /// - Parameter string: valid UTF-8.
    package init(string: [UInt8]) {
        opcode = .string
        payloadBytes = string.count
        plainFrame = SharedWebSocketMessage.frame(.string, string, isCompressed: false)
    }

    var payload: [UInt8] { Array(plainFrame[(plainFrame.count - payloadBytes)...]) }

    func compressedFrame(windowBits: Int, _ codecs: DeflateCodecs) -> [UInt8] {
        // Smaller windows are so rare that their frames are not cached.
        if windowBits < WebSocketDeflate.windowBitsMax { return compress(windowBits, codecs) ?? plainFrame }
        return compressed.withLock { kept in
            if let kept { return kept }
            let frame = compress(windowBits, codecs) ?? plainFrame
            kept = frame
            return frame
        }
    }

    private func compress(_ windowBits: Int, _ codecs: DeflateCodecs) -> [UInt8]? {
        guard let deflater = codecs.takeDeflater(windowBits: windowBits) else { return nil }
        let start = plainFrame.count - payloadBytes
        let result = plainFrame.withUnsafeBytes { deflater.compress(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        codecs.giveBack(deflater)
        guard let result, result.count < payloadBytes else { return nil }
        return SharedWebSocketMessage.frame(opcode, result, isCompressed: true)
    }

    private static func frame(_ opcode: WebSocketOpcode, _ payload: [UInt8], isCompressed: Bool) -> [UInt8] {
        var frame: [UInt8] = []
        frame.reserveCapacity(WebSocketFrameHeader.sizeBytesMax + payload.count)
        WebSocketFrameHeader(
            opcode: opcode, isFinal: true, isCompressed: isCompressed, mask: nil, payloadBytes: payload.count
        ).append(to: &frame)
        frame.append(contentsOf: payload)
        return frame
    }
}
