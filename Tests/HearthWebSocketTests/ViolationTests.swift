import HearthTestSupport
import HearthWebSocket
import Testing

@Suite struct ViolationTests {
    static let protocolErrors: [(String, [UInt8])] = [
        ("not masked", frame(1, bytes("a"), mask: nil)),
        ("RSV2", frame(1, reserved: 2)), ("RSV3", frame(1, reserved: 1)),
        ("compression not agreed on", frame(1, reserved: 4)),
        ("opcode 3", frame(3)), ("opcode 7", frame(7)), ("opcode 11", frame(11)), ("opcode 15", frame(15)),
        ("fragmented ping", frame(9, isFinal: false)), ("fragmented close", frame(8, isFinal: false)),
        ("long ping", [0x89, 0xFE, 0x00, 0x7E]), ("long close", [0x88, 0xFF]),
        ("continuation of nothing", frame(0)),
        ("continuation after the end", frame(1) + frame(0)),
        ("text within text", frame(1, isFinal: false) + frame(1)),
        ("binary within text", frame(1, isFinal: false) + frame(2)),
        ("125 as 16 bits", [0x81, 0xFE, 0x00, 0x7D]), ("0 as 16 bits", [0x81, 0xFE, 0x00, 0x00]),
        ("65535 as 64 bits", [0x81, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]),
        ("top bit", [0x81, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ("close with one byte", frame(8, [3])),
        ("close code 0", frame(8, [0, 0])), ("close code 999", frame(8, [0x03, 0xE7])),
        ("close code 1004", frame(8, [0x03, 0xEC])), ("close code 1005", frame(8, [0x03, 0xED])),
        ("close code 1006", frame(8, [0x03, 0xEE])), ("close code 1015", frame(8, [0x03, 0xF7])),
        ("close code 1016", frame(8, [0x03, 0xF8])), ("close code 2999", frame(8, [0x0B, 0xB7])),
        ("close code 5000", frame(8, [0x13, 0x88])),
    ]

    @Test(arguments: protocolErrors) func closesWith1002(_ name: String, _ input: [UInt8]) {
        #expect(failureCode(input) == .protocolError)
        #expect(failureCode(frame(2, [1]) + input) == .protocolError)
    }

    @Test func compressionMarksOnlyTheFirstFrameOfAMessage() {
        let deflate = WebSocketDeflate()
        #expect(failureCode(frame(1, isFinal: false) + frame(0, reserved: 4), deflate: deflate) == .protocolError)
        #expect(failureCode(frame(9, reserved: 4), deflate: deflate) == .protocolError)
        #expect(failureCode(frame(8, reserved: 4), deflate: deflate) == .protocolError)
        #expect(failureCode(frame(1, [0], reserved: 4), deflate: deflate) == nil)
    }

    @Test func aClientRefusesMaskedFrames() {
        #expect(failureCode(frame(1, bytes("a")), role: .client) == .protocolError)
        #expect(failureCode(serverFrame(1, bytes("a")), role: .client) == nil)
    }

    @Test(arguments: [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999])
    func acceptsValidCloseCodes(_ code: Int) {
        #expect(failureCode(frame(8, [UInt8(code >> 8), UInt8(code & 255)])) == nil)
    }

    /// Source: RFC 3629, and Unicode's table of well-formed byte sequences.
    @Test(arguments: [
        "80", "bf", "c0 80", "c1 bf", "c2", "c2 41", "e0 80 80", "e0 9f bf", "ed a0 80", "ed bf bf", "e2 82",
        "f0 80 80 80",
        "f0 8f bf bf", "f4 90 80 80", "f5 80 80 80", "fe", "ff", "41 42 43 44 45 46 47 48 49 ff", "f0 9f 98",
        "e2 28 a1",
    ])
    func closesWith1007ForInvalidUTF8(_ input: String) {
        let string = hex(input)
        #expect(failureCode(frame(1, string)) == .invalidPayload)
        #expect(failureCode(frame(2, string)) == nil)
        #expect(failureCode(frame(8, [0x03, 0xE8] + string)) == .invalidPayload)
        for cut in 0...string.count {
            let pieces = frame(1, Array(string[..<cut]), isFinal: false) + frame(9) + frame(0, Array(string[cut...]))
            #expect(failureCode(pieces) == .invalidPayload)
        }
    }

    @Test func aCharacterMayBeCutByFragments() throws {
        let string = bytes("aä€😀\u{10FFFF}\u{7FF}\u{800}\u{D7FF}\u{E000}z")
        for cut in 0...string.count {
            let server = WebSocketConnection(role: .server)
            let pieces = frame(1, Array(string[..<cut]), isFinal: false) + frame(0, Array(string[cut...]))
            #expect(try server.receive(pieces) == [.string(string)])
        }
    }

    @Test func anInvalidTextMessageIsRejectedBeforeItsEnd() {
        #expect(failureCode(frame(1, [0xFF], isFinal: false)) == .invalidPayload)
    }

    @Test func aFailureIsPermanentAndFreesBuffers() {
        let server = WebSocketConnection(role: .server)
        for _ in 0..<3 {
            #expect(throws: WebSocketFailure.self) {
                try server.receive(frame(1, [UInt8](repeating: 65, count: 1_000), isFinal: false) + frame(3))
            }
            #expect(server.bufferedBytes == 0)
        }
        #expect(server.close(.protocolError) == serverFrame(8, [0x03, 0xEA]))
    }
}

@Suite struct LimitTests {
    private let limits = WebSocketLimits(messageBytesMax: 1_000, fragmentsMax: 10, compressionThresholdBytes: 0)

    @Test func messagesAreBounded() throws {
        let fits = [UInt8](repeating: 65, count: 1_000)
        #expect(failureCode(frame(1, fits), limits: limits) == nil)
        #expect(failureCode(frame(1, fits + [65]), limits: limits) == .messageTooBig)
        // Detected in the header, before any payload arrives.
        #expect(failureCode([0x82, 0xFE, 0x03, 0xE9, 0, 0, 0, 0], limits: limits) == .messageTooBig)
        #expect(failureCode([0x82, 0xFF, 0x7F] + [UInt8](repeating: 255, count: 11), limits: limits) == .messageTooBig)
        #expect(failureCode(frame(1, fits, isFinal: false) + frame(0, [65]), limits: limits) == .messageTooBig)
        #expect(failureCode(frame(1, fits, isFinal: false) + frame(9, [65]) + frame(0), limits: limits) == nil)
    }

    @Test func fragmentsAreBounded() {
        let nine = (0..<9).flatMap { _ in frame(0, isFinal: false) }
        #expect(failureCode(frame(1, isFinal: false) + nine, limits: limits) == nil)
        #expect(failureCode(frame(1, isFinal: false) + nine + frame(0), limits: limits) == .policyViolation)
        // The count restarts for each message.
        #expect(failureCode((0..<100).flatMap { _ in frame(1) }, limits: limits) == nil)
    }

    @Test func theLimitAppliesToTheInflatedMessage() throws {
        for (count, code) in [(1_000, nil), (1_001, WebSocketCloseCode.messageTooBig), (50 << 20, .messageTooBig)] {
            let client = WebSocketConnection(
                role: .client, limits: WebSocketLimits(compressionThresholdBytes: 0), deflate: WebSocketDeflate())
            let sent = client.send(string: [UInt8](repeating: 65, count: count))
            #expect(sent.count < count / 20)
            #expect(failureCode(sent, limits: limits, deflate: WebSocketDeflate()) == code)
        }
    }

    /// Empty blocks: much input without output.
    @Test func aCompressedMessageWithoutOutputIsBounded() {
        let empty = (0..<400).flatMap { _ in hex("00 00 00 ff ff") }
        let limits = WebSocketLimits(messageBytesMax: 1_000, fragmentsMax: 1_000)
        let input = frame(1, empty, isFinal: false, reserved: 4) + frame(0, empty)
        #expect(failureCode(input, limits: limits, deflate: WebSocketDeflate()) == .messageTooBig)
    }

    @Test(arguments: ["ff", "f2 48 cd c9", "06", "07", "00 05 00 fa", "f2 48 cd c9 c9 07 00 ff ff ff ff"])
    func brokenCompressionIsRefused(_ input: String) {
        #expect(failureCode(frame(1, hex(input), reserved: 4), deflate: WebSocketDeflate()) == .invalidPayload)
    }

    @Test func aFailedDecompressorIsNotReused() throws {
        let codecs = DeflateCodecs()
        let broken = WebSocketConnection(role: .server, deflate: WebSocketDeflate(), codecs: codecs)
        #expect(throws: WebSocketFailure.self) { try broken.receive(frame(1, hex("f2 48 ff ff ff"), reserved: 4)) }
        let next = WebSocketConnection(role: .server, deflate: WebSocketDeflate(), codecs: codecs)
        let hello = frame(1, hex("f2 48 cd c9 c9 07 00"), reserved: 4)
        #expect(try next.receive(hello) == [.string(bytes("Hello"))])
    }

    @Test func shortMessagesAreNotCompressed() {
        let limits = WebSocketLimits(compressionThresholdBytes: 100)
        let server = WebSocketConnection(role: .server, limits: limits, deflate: WebSocketDeflate())
        #expect(server.send(string: [UInt8](repeating: 65, count: 99)).count == 101)
        #expect(server.send(string: [UInt8](repeating: 65, count: 100)).count < 20)
        // Incompressible messages are not compressed either.
        var generator = SeededGenerator(seed: 1)
        let noise = (0..<200).map { _ in UInt8.random(in: 0...255, using: &generator) }
        #expect(server.send(binary: noise) == serverFrame(2, noise))
    }
}
