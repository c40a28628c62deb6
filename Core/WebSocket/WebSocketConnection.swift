/// An open WebSocket connection as a state machine: bytes of the peer go in and events come out, messages go in and
/// bytes for the peer come out.
///
/// It answers nothing automatically. The caller answers `.ping` with `pong`, and `.close` or a failure with `close`;
/// after either it reads nothing more. Without context takeover an idle connection owns no memory except the object.
///
/// Not Sendable: it has one owner, a thread or a lock.
package final class WebSocketConnection {
    package enum Role: Sendable {
        case client
        case server
    }

    package enum Event: Equatable, Sendable {
        /// Valid UTF-8.
        case string([UInt8])
        case binary([UInt8])
        /// Must be answered with a pong of the same payload.
        case ping([UInt8])
        case pong([UInt8])
        /// The last event. The code is optional.
        case close(WebSocketCloseCode?, reason: String)
    }

    /// A message whose frames are incomplete.
    private struct Message {
        var isString: Bool
        var isCompressed: Bool
        var bytes: [UInt8] = []
        var validator = UTF8Validator()
        var frames = 0
        /// Received payload bytes: a compressed message could continue forever without output.
        var receivedBytes = 0
    }

    package let role: Role
    package let limits: WebSocketLimits
    package let deflate: WebSocketDeflate?

    private var reader = WebSocketFrameReader()
    /// The frame whose payload is being read, and how much of it has arrived.
    private var frame: WebSocketFrameHeader?
    private var payloadRead = 0
    private var message: Message?
    private var control: [UInt8] = []
    private var failure: WebSocketFailure?
    /// The peer sends no more messages.
    package private(set) var hasReceivedClose = false
    /// Nothing more may be sent.
    package private(set) var hasSentClose = false

    private let codecs: DeflateCodecs
    private var inflater: Inflater?
    private var deflater: Deflater?
    private let nextMask: () -> UInt32

    /// - Parameters:
    ///   - deflate: the result of the handshake; nil: no compression.
    ///   - codecs: shared with other connections of the same owner.
    ///   - nextMask: the mask of a client's frames. The author of the messages must not be able to predict it (RFC
    ///     6455, 10.3).
    package init(
        role: Role, limits: WebSocketLimits = WebSocketLimits(), deflate: WebSocketDeflate? = nil,
        codecs: DeflateCodecs = DeflateCodecs(), nextMask: @escaping () -> UInt32 = WebSocketConnection.randomMask
    ) {
        self.role = role
        self.limits = limits
        self.deflate = deflate
        self.codecs = codecs
        self.nextMask = nextMask
    }

    package static func randomMask() -> UInt32 {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }

    /// Buffered bytes of an incomplete message.
    package var bufferedBytes: Int { (message?.bytes.count ?? 0) + control.count }

    /// The peer has begun a message or frame that it must continue.
    package var isWithinMessage: Bool { message != nil || frame != nil || reader.isUnfinished }

    // MARK: Input

    /// Reads from `position` and advances it: to the end of the input when there is no event, else past the event's
    /// last byte. The caller repeats the call until it returns nil.
    ///
    /// - Throws: the failure with which to close; the same one again from then on.
    package func next(
        _ input: UnsafeRawBufferPointer, _ position: inout Int
    ) throws(WebSocketFailure) -> Event? {
        if let failure { throw failure }
        do throws(WebSocketFailure) {
            while position < input.count {
                if hasReceivedClose {
                    position = input.count
                    break
                }
                if frame == nil {
                    let byte = input[position]
                    position += 1
                    guard let header = try reader.read(byte, allowsCompression: deflate != nil) else { continue }
                    try begin(header)
                }
                if let event = try readPayload(input, &position) { return event }
            }
            return nil
        } catch {
            fail(error)
            throw error
        }
    }

    /// All events of the input. The events before a failure are lost.
    package func receive(_ bytes: [UInt8]) throws(WebSocketFailure) -> [Event] {
        try bytes.withUnsafeBufferPointer { input throws(WebSocketFailure) in
            let input = UnsafeRawBufferPointer(input)
            var events: [Event] = []
            var position = 0
            while let event = try next(input, &position) { events.append(event) }
            return events
        }
    }

    private func fail(_ failure: WebSocketFailure) {
        self.failure = failure
        message = nil
        frame = nil
        control = []
        // It may hold half of a message: another connection must not get it.
        inflater = nil
    }

    private func begin(_ header: WebSocketFrameHeader) throws(WebSocketFailure) {
        guard (header.mask != nil) == (role == .server) else {
            throw .violation(role == .server ? "a client's frame is not masked" : "a server's frame is masked")
        }
        if !header.opcode.isControl {
            if header.opcode == .continuation {
                guard message != nil else { throw .violation("a continuation frame without a message") }
            } else {
                guard message == nil else { throw .violation("a message begins within another") }
                message = Message(isString: header.opcode == .string, isCompressed: header.isCompressed)
            }
            try countFrame(header)
        }
        frame = header
        payloadRead = 0
    }

    private func countFrame(_ header: WebSocketFrameHeader) throws(WebSocketFailure) {
        guard var message = message.take() else { return }
        message.frames += 1
        guard message.frames <= limits.fragmentsMax else {
            throw WebSocketFailure(.policyViolation, "a message has more than \(limits.fragmentsMax) fragments")
        }
        // Incompressible data grows by five bytes per some thousands.
        let slack = message.isCompressed ? 1_024 + limits.messageBytesMax >> 7 : 0
        guard header.payloadBytes <= limits.messageBytesMax + slack - message.receivedBytes else { throw tooBig }
        message.receivedBytes += header.payloadBytes
        self.message = message
    }

    private var tooBig: WebSocketFailure {
        WebSocketFailure(.messageTooBig, "a message is larger than \(limits.messageBytesMax) bytes")
    }

    private func readPayload(
        _ input: UnsafeRawBufferPointer, _ position: inout Int
    ) throws(WebSocketFailure) -> Event? {
        guard let header = frame else { return nil }
        let count = min(input.count - position, header.payloadBytes - payloadRead)
        if count > 0 {
            let piece = UnsafeRawBufferPointer(rebasing: input[position..<(position + count)])
            if header.opcode.isControl {
                WebSocketConnection.append(piece, header.mask, offset: payloadRead, to: &control)
            } else {
                try receiveData(piece, header)
            }
            position += count
            payloadRead += count
        }
        guard payloadRead == header.payloadBytes else { return nil }
        frame = nil
        if header.opcode.isControl { return try endControl(header.opcode) }
        return header.isFinal ? try endMessage() : nil
    }

    private static func append(
        _ piece: UnsafeRawBufferPointer, _ mask: UInt32?, offset: Int, to bytes: inout [UInt8]
    ) {
        let start = bytes.count
        bytes.append(contentsOf: piece)
        guard let mask else { return }
        bytes.withUnsafeMutableBytes { WebSocketMask.apply(mask, offset: offset, to: .init(rebasing: $0[start...])) }
    }

    // MARK: Data frames

    private func receiveData(_ piece: UnsafeRawBufferPointer, _ header: WebSocketFrameHeader) throws(WebSocketFailure) {
        // Moved out, so that its array has one owner and grows in place.
        guard var message = message.take() else { return }
        let start = message.bytes.count
        if message.isCompressed {
            var unmasked: [UInt8] = []
            WebSocketConnection.append(piece, header.mask, offset: payloadRead, to: &unmasked)
            try inflate(&message) { (inflater, bytes) throws(Inflater.Failure) in
                try unmasked.withUnsafeBufferPointer { input throws(Inflater.Failure) in
                    try inflater.inflate(UnsafeRawBufferPointer(input), into: &bytes, bytesMax: limits.messageBytesMax)
                }
            }
        } else {
            if start == 0, header.isFinal, piece.count == header.payloadBytes {
                message.bytes.reserveCapacity(piece.count)
            }
            WebSocketConnection.append(piece, header.mask, offset: payloadRead, to: &message.bytes)
        }
        try WebSocketConnection.validate(&message, from: start)
        self.message = message
    }

    private func inflate(
        _ message: inout Message, _ body: (Inflater, inout [UInt8]) throws(Inflater.Failure) -> Void
    ) throws(WebSocketFailure) {
        guard let inflater = inflater ?? codecs.takeInflater() else {
            throw WebSocketFailure(.internalError, "no memory for decompression")
        }
        self.inflater = inflater
        do throws(Inflater.Failure) {
            try body(inflater, &message.bytes)
        } catch .tooLarge {
            throw tooBig
        } catch {
            throw WebSocketFailure(.invalidPayload, "a compressed message is malformed")
        }
    }

    private static func validate(_ message: inout Message, from start: Int) throws(WebSocketFailure) {
        guard message.isString else { return }
        let isValid = message.bytes.withUnsafeBytes {
            message.validator.accept(UnsafeRawBufferPointer(rebasing: $0[start...]))
        }
        guard isValid else { throw WebSocketFailure(.invalidPayload, "a text message is not valid UTF-8") }
    }

    private func endMessage() throws(WebSocketFailure) -> Event? {
        guard var message = message.take() else { return nil }
        if message.isCompressed {
            let start = message.bytes.count
            try inflate(&message) { (inflater, bytes) throws(Inflater.Failure) in
                try inflater.finishMessage(into: &bytes, bytesMax: limits.messageBytesMax)
            }
            try WebSocketConnection.validate(&message, from: start)
            let keepsWindow =
                role == .server ? deflate?.clientTakesOverContext : deflate?.serverTakesOverContext
            if keepsWindow != true, let inflater {
                codecs.giveBack(inflater)
                self.inflater = nil
            }
        }
        guard message.isString else { return .binary(message.bytes) }
        guard message.validator.isComplete else {
            throw WebSocketFailure(.invalidPayload, "a text message ends within a character")
        }
        return .string(message.bytes)
    }

    // MARK: Control frames

    private func endControl(_ opcode: WebSocketOpcode) throws(WebSocketFailure) -> Event? {
        let payload = control
        control = []
        switch opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        default: return try receivedClose(payload)
        }
    }

    private func receivedClose(_ payload: [UInt8]) throws(WebSocketFailure) -> Event {
        hasReceivedClose = true
        guard !payload.isEmpty else { return .close(nil, reason: "") }
        guard payload.count >= 2 else { throw .violation("a close code has two bytes") }
        let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.isSendable else { throw .violation("close code \(code.rawValue) must not be sent") }
        guard payload[2...].withUnsafeBytes({ UTF8Validator.isValid($0) }) else {
            throw WebSocketFailure(.invalidPayload, "a close reason is not valid UTF-8")
        }
        return .close(code, reason: String(decoding: payload[2...], as: UTF8.self))
    }

    // MARK: Output

    /// - Parameter string: valid UTF-8.
    /// - Returns: the bytes to send; empty after `close`.
    package func send(string: [UInt8]) -> [UInt8] { send(.string, string) }

    package func send(binary: [UInt8]) -> [UInt8] { send(.binary, binary) }

    /// Sends a message that many connections share. A client shares no frame, because each has its own mask.
    package func send(_ message: SharedWebSocketMessage) -> [UInt8] {
        guard role == .server else { return send(message.opcode, message.payload) }
        guard !hasSentClose else { return [] }
        guard let deflate, message.payloadBytes >= limits.compressionThresholdBytes else { return message.plainFrame }
        // With context takeover the compressor's window belongs to the connection.
        guard !deflate.serverTakesOverContext else { return send(message.opcode, message.payload) }
        return message.compressedFrame(windowBits: deflate.serverWindowBits, codecs)
    }

    /// - Parameter payload: its first 125 bytes are sent.
    package func ping(_ payload: [UInt8] = []) -> [UInt8] { sendControl(.ping, payload) }

    package func pong(_ payload: [UInt8]) -> [UInt8] { sendControl(.pong, payload) }

    /// The last frame. A long reason is truncated.
    /// - Parameter code: nil sends no code. For a code that no frame may have 1011 is sent.
    package func close(_ code: WebSocketCloseCode?, reason: String = "") -> [UInt8] {
        guard !hasSentClose else { return [] }
        var payload: [UInt8] = []
        if let code {
            let code = code.isSendable ? code : .internalError
            payload = [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 255)]
            for scalar in reason.unicodeScalars {
                let bytes = UTF8.encode(scalar).map(Array.init) ?? []
                guard payload.count + bytes.count <= WebSocketFrameHeader.controlBytesMax else { break }
                payload += bytes
            }
        }
        let frame = sendControl(.close, payload)
        hasSentClose = true
        deflater = nil
        return frame
    }

    private func sendControl(_ opcode: WebSocketOpcode, _ payload: [UInt8]) -> [UInt8] {
        guard !hasSentClose else { return [] }
        // A longer one would be no frame.
        return encode(opcode, Array(payload.prefix(WebSocketFrameHeader.controlBytesMax)), isCompressed: false)
    }

    private func send(_ opcode: WebSocketOpcode, _ payload: [UInt8]) -> [UInt8] {
        guard !hasSentClose else { return [] }
        if let deflate, payload.count >= max(1, limits.compressionThresholdBytes),
            let compressed = compress(payload, deflate)
        {
            return encode(opcode, compressed, isCompressed: true)
        }
        return encode(opcode, payload, isCompressed: false)
    }

    /// Nil when compression does not make it smaller.
    private func compress(_ payload: [UInt8], _ deflate: WebSocketDeflate) -> [UInt8]? {
        let keepsWindow = role == .server ? deflate.serverTakesOverContext : deflate.clientTakesOverContext
        let windowBits = role == .server ? deflate.serverWindowBits : deflate.clientWindowBits
        guard let deflater = deflater ?? codecs.takeDeflater(windowBits: windowBits) else { return nil }
        let compressed = payload.withUnsafeBytes { deflater.compress($0) }
        if keepsWindow, compressed != nil {
            // The compressor's window contains the message now, so the peer's window must contain it, too.
            self.deflater = deflater
            return compressed
        }
        self.deflater = nil
        codecs.giveBack(deflater)
        guard let compressed, compressed.count < payload.count else { return nil }
        return compressed
    }

    private func encode(_ opcode: WebSocketOpcode, _ payload: [UInt8], isCompressed: Bool) -> [UInt8] {
        let mask = role == .client ? nextMask() : nil
        var frame: [UInt8] = []
        frame.reserveCapacity(WebSocketFrameHeader.sizeBytesMax + payload.count)
        WebSocketFrameHeader(
            opcode: opcode, isFinal: true, isCompressed: isCompressed, mask: mask, payloadBytes: payload.count
        ).append(to: &frame)
        payload.withUnsafeBytes { WebSocketConnection.append($0, mask, offset: 0, to: &frame) }
        return frame
    }
}
