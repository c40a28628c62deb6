import HearthTestSupport
import HearthWebSocket
import Testing

@Suite struct PropertyTests {
    /// Frames of every kind, including violations.
    private static let scripts: [[UInt8]] = [
        frame(1, bytes("aä€😀")) + frame(9, bytes("ping")) + frame(2, [1, 2, 3]) + frame(8, [0x03, 0xE8] + bytes("ok")),
        frame(1, bytes("a"), isFinal: false) + frame(10, [9]) + frame(0, bytes("b")) + frame(0),
        frame(2, [UInt8](repeating: 7, count: 126)) + frame(1, [0xF0, 0x9F], isFinal: false) + frame(0, [0x98, 0x80]),
        frame(1, hex("f2 48 cd c9 c9 07 00"), reserved: 4) + frame(1, hex("f2 48 cd"), isFinal: false, reserved: 4)
            + frame(9) + frame(0, hex("c9 c9 07 00")) + frame(1, [0xFF]),
        frame(1, bytes("abc")) + [0x83],
    ]

    @Test(arguments: scripts.indices) func everySplitGivesTheSameEvents(_ index: Int) {
        let input = PropertyTests.scripts[index]
        func reading(_ cuts: [Int]) -> Reading {
            Reading(
                input, cuts: cuts,
                connection: WebSocketConnection(role: .server, deflate: WebSocketDeflate(clientTakesOverContext: true)))
        }
        let whole = reading([])
        #expect(!whole.events.isEmpty)
        #expect(reading(Array(1..<input.count)) == whole)
        for first in 0..<input.count {
            for second in first..<input.count where second % 5 == 0 && reading([first, second]) != whole {
                Issue.record("cut at \(first) and \(second)")
            }
        }
    }

    /// Random messages, both ways, randomly split, under each agreement on compression.
    @Test(arguments: [UInt64](0..<30)) func sentMessagesArrive(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let deflate: WebSocketDeflate? =
            seed % 5 == 0
            ? nil
            : WebSocketDeflate(
                serverTakesOverContext: seed & 1 == 0, clientTakesOverContext: seed & 2 == 0,
                serverWindowBits: Int.random(in: 9...15, using: &generator),
                clientWindowBits: Int.random(in: 9...15, using: &generator))
        let limits = WebSocketLimits(compressionThresholdBytes: Int.random(in: 0...300, using: &generator))
        let codecs = DeflateCodecs()
        let ends = [WebSocketConnection.Role.server, .client].map {
            WebSocketConnection(role: $0, limits: limits, deflate: deflate, codecs: codecs)
        }
        for round in 0..<30 {
            let sender = ends[round & 1]
            var sent: [UInt8] = []
            var expected: [Event] = []
            for _ in 0..<Int.random(in: 1...5, using: &generator) {
                let event = PropertyTests.randomEvent(&generator)
                expected.append(event)
                switch event {
                case .string(let string): sent += sender.send(string: string)
                case .binary(let bytes): sent += sender.send(binary: bytes)
                case .ping(let payload): sent += sender.ping(payload)
                case .pong(let payload): sent += sender.pong(payload)
                case .close: break
                }
            }
            let cuts = (0..<Int.random(in: 0...8, using: &generator))
                .map { _ in Int.random(in: 0...sent.count, using: &generator) }.sorted()
            let reading = Reading(sent, cuts: cuts, connection: ends[1 - round & 1])
            #expect(reading.failure == nil && reading.events == expected, "seed \(seed), round \(round)")
        }
    }

    private static func randomEvent(_ generator: inout SeededGenerator) -> Event {
        // Few are long, so that the test is fast.
        let lengths = [0, 1, 7, 8, 9, 125, 126, 127, 300, 1_000]
        let isLong = Int.random(in: 0..<20, using: &generator) == 0
        let length = (isLong ? [65_535, 65_536, 100_000] : lengths).randomElement(using: &generator) ?? 0
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: return .ping((0..<min(125, length)).map { UInt8($0) })
        case 1: return .pong((0..<min(125, length)).map { UInt8($0) })
        case 2...4:
            let noise = (0..<min(997, length)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            var bytes: [UInt8] = []
            while bytes.count < length { bytes += noise.prefix(length - bytes.count) }
            return .binary(bytes)
        default:
            let alphabet = Array("ab \u{e4}\u{20AC}\u{1F600}\u{0}").map { Array(String($0).utf8) }
            var word: [UInt8] = []
            for _ in 0..<50 { word += alphabet.randomElement(using: &generator) ?? [] }
            var string: [UInt8] = []
            while string.count < length { string += word }
            return .string(string)
        }
    }

    /// Noise never traps, and every split gives the same result.
    @Test(arguments: [UInt64](0..<300)) func noiseIsReadTheSameForEverySplit(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var input = PropertyTests.scripts.randomElement(using: &generator) ?? []
        for _ in 0..<Int.random(in: 1...6, using: &generator) {
            let position = Int.random(in: 0..<input.count, using: &generator)
            input[position] = UInt8.random(in: 0...255, using: &generator)
        }
        let role: WebSocketConnection.Role = seed & 1 == 0 ? .server : .client
        func reading(_ cuts: [Int]) -> Reading {
            Reading(
                input, cuts: cuts, connection: WebSocketConnection(role: role, deflate: WebSocketDeflate()))
        }
        #expect(reading(Array(1..<input.count)) == reading([]), "seed \(seed)")
    }
}
