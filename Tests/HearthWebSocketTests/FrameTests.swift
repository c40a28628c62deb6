import HearthWebSocket
import Testing

/// The examples of RFC 6455, 5.7, and of RFC 7692, 7.2.3.
@Suite struct FrameTests {
    @Test func readsTheExamplesOfTheStandard() throws {
        let client = WebSocketConnection(role: .client)
        #expect(try client.receive(hex("81 05 48 65 6c 6c 6f")) == [.string(bytes("Hello"))])
        #expect(try client.receive(hex("01 03 48 65 6c 80 02 6c 6f")) == [.string(bytes("Hello"))])
        #expect(try client.receive(hex("89 05 48 65 6c 6c 6f")) == [.ping(bytes("Hello"))])
        let zeros = [UInt8](repeating: 0, count: 65_536)
        #expect(try client.receive(hex("82 7e 01 00") + zeros[..<256]) == [.binary(Array(zeros[..<256]))])
        #expect(try client.receive(hex("82 7f 00 00 00 00 00 01 00 00") + zeros) == [.binary(zeros)])
        let server = WebSocketConnection(role: .server)
        #expect(try server.receive(hex("81 85 37 fa 21 3d 7f 9f 4d 51 58")) == [.string(bytes("Hello"))])
        #expect(try server.receive(hex("8a 85 37 fa 21 3d 7f 9f 4d 51 58")) == [.pong(bytes("Hello"))])
    }

    @Test func writesTheExamplesOfTheStandard() {
        let server = WebSocketConnection(role: .server)
        #expect(server.send(string: bytes("Hello")) == hex("81 05 48 65 6c 6c 6f"))
        #expect(server.ping(bytes("Hello")) == hex("89 05 48 65 6c 6c 6f"))
        let zeros = [UInt8](repeating: 0, count: 65_536)
        #expect(server.send(binary: Array(zeros[..<256])) == hex("82 7e 01 00") + zeros[..<256])
        #expect(server.send(binary: zeros) == hex("82 7f 00 00 00 00 00 01 00 00") + zeros)
        // The first byte of the mask is the lowest.
        let client = WebSocketConnection(role: .client, nextMask: { 0x3D21_FA37 })
        #expect(client.send(string: bytes("Hello")) == hex("81 85 37 fa 21 3d 7f 9f 4d 51 58"))
        #expect(client.pong(bytes("Hello")) == hex("8a 85 37 fa 21 3d 7f 9f 4d 51 58"))
        #expect(client.close(.normal, reason: "") == hex("88 82 37 fa 21 3d") + [0x03 ^ 0x37, 0xE8 ^ 0xFA])
    }

    @Test(arguments: [
        "c1 07 f2 48 cd c9 c9 07 00",
        // In two frames.
        "41 03 f2 48 cd 80 04 c9 c9 07 00",
        // An uncompressed block.
        "c1 0b 00 05 00 fa ff 48 65 6c 6c 6f 00",
        // A final block, with and without the following tail.
        "c1 08 f3 48 cd c9 c9 07 00 00",
        "c1 07 f3 48 cd c9 c9 07 00",
        // Two blocks.
        "c1 0d f2 48 05 00 00 00 ff ff ca c9 c9 07 00",
    ])
    func inflatesTheExamplesOfTheStandard(_ input: String) throws {
        let client = WebSocketConnection(role: .client, deflate: WebSocketDeflate())
        for _ in 0..<3 { #expect(try client.receive(hex(input)) == [.string(bytes("Hello"))]) }
    }

    @Test func keepsTheWindowOnlyWhenAgreed() throws {
        let first = hex("c1 07 f2 48 cd c9 c9 07 00")
        // Refers to the message before it.
        let second = hex("c1 05 f2 00 11 00 00")
        let keeping = WebSocketConnection(role: .client, deflate: WebSocketDeflate(serverTakesOverContext: true))
        #expect(try keeping.receive(first + second) == [.string(bytes("Hello")), .string(bytes("Hello"))])
        let forgetting = WebSocketConnection(role: .client, deflate: WebSocketDeflate(clientTakesOverContext: true))
        #expect(try forgetting.receive(first) == [.string(bytes("Hello"))])
        #expect(throws: WebSocketFailure.self) { try forgetting.receive(second) }
    }

    @Test func controlFramesAreAllowedBetweenFragments() throws {
        let server = WebSocketConnection(role: .server)
        let input =
            frame(1, bytes("a"), isFinal: false) + frame(9, bytes("p")) + frame(0, isFinal: false) + frame(10)
            + frame(0, bytes("b")) + frame(2, [7])
        #expect(try server.receive(input) == [.ping(bytes("p")), .pong([]), .string(bytes("ab")), .binary([7])])
    }

    @Test func aCloseIsTheLastEvent() throws {
        let server = WebSocketConnection(role: .server)
        let input = frame(8, [0x03, 0xE9] + bytes("bye")) + frame(1, bytes("more")) + [0xFF, 0xFF]
        #expect(try server.receive(input) == [.close(.goingAway, reason: "bye")])
        #expect(server.hasReceivedClose)
        #expect(try server.receive(frame(1)).isEmpty)
        #expect(server.close(.normal) == serverFrame(8, [0x03, 0xE8]))
        #expect(server.close(.normal).isEmpty && server.send(string: [65]).isEmpty && server.ping().isEmpty)
        #expect(try WebSocketConnection(role: .server).receive(frame(8)) == [.close(nil, reason: "")])
    }

    @Test func aLongReasonIsCutBetweenCharacters() throws {
        let server = WebSocketConnection(role: .server)
        let client = WebSocketConnection(role: .client)
        let sent = server.close(.policyViolation, reason: "a" + String(repeating: "😀", count: 100))
        #expect(sent.count == 2 + 2 + 121)
        #expect(
            try client.receive(sent) == [.close(.policyViolation, reason: "a" + String(repeating: "😀", count: 30))])
    }

    @Test func aSharedMessageEqualsSeparateMessages() throws {
        for count in [0, 5, 125, 126, 70_000] {
            let string = [UInt8](repeating: 65, count: count)
            let shared = SharedWebSocketMessage(string: string)
            for deflate in [
                nil, WebSocketDeflate(), WebSocketDeflate(serverTakesOverContext: true),
                WebSocketDeflate(serverWindowBits: 9),
            ] {
                let server = WebSocketConnection(role: .server, deflate: deflate)
                let client = WebSocketConnection(role: .client, deflate: deflate)
                for _ in 0..<2 {
                    let sent = server.send(shared)
                    #expect(deflate == nil || count < 1_024 || sent.count < count / 10)
                    #expect(try client.receive(sent) == [.string(string)])
                }
            }
        }
    }
}
