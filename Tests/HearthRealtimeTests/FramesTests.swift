import HearthModel
import Testing

@testable import HearthRealtimeServer

@Suite struct FramesTests {
    private func string(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func joinsPiecesAndIgnoresKeepAlives() throws {
        var joiner = RealtimeFrameJoiner()
        #expect(try joiner.receive(Array("0".utf8)) == nil)
        #expect(try joiner.receive(Array("{}".utf8)).flatMap(whole).map(string) == "{}")
        #expect(try joiner.receive(Array("3".utf8)) == nil)
        #expect(try joiner.receive(Array("{\"a\"".utf8)) == nil)
        #expect(try joiner.receive(Array(":12".utf8)) == nil)
        #expect(try joiner.receive(Array("3}".utf8)).flatMap(whole).map(string) == "{\"a\":123}")
        #expect(try joiner.receive(Array("0".utf8)) == nil)
        #expect(try joiner.receive(Array("{}".utf8)).flatMap(whole).map(string) == "{}")
    }

    private func whole(_ received: RealtimeFrameJoiner.Received) -> [UInt8]? {
        guard case .message(let message) = received else { return nil }
        return message
    }

    @Test func aNumberWithinPiecesIsAPiece() throws {
        var joiner = RealtimeFrameJoiner()
        #expect(try joiner.receive(Array("2".utf8)) == nil)
        #expect(try joiner.receive(Array("0".utf8)) == nil)
        #expect(try joiner.receive(Array("1".utf8)).flatMap(whole).map(string) == "01")
    }

    @Test func refusesTooManyPiecesAndTooMuch() throws {
        var joiner = RealtimeFrameJoiner()
        #expect(throws: RealtimeFault.self) { try joiner.receive(Array("10001".utf8)) }
        joiner = RealtimeFrameJoiner()
        _ = try joiner.receive(Array("2".utf8))
        let half = [UInt8](repeating: 0x20, count: Limits.realtimeMessageBytesMax / 2 + 1)
        #expect(try joiner.receive(half) == nil)
        #expect(throws: RealtimeFault.self) { try joiner.receive(half) }
    }

    /// The public SDKs write the members of a request in different orders, and the number may come last.
    @Test(
        arguments: [
            (#"{"t":"d","d":{"r":7,"a":"p","b":{"p":"/x","d":{"r":9,"s":"#, #"}}}}"#, 7),
            (#"{"d":{"b":{"r":1,"d":["#, #"],"r":"2"},"a":"p","r":1234567890123},"t":"d"}"#, 1_234_567_890_123),
            (#"{ "t" : "d", "d" : { "a" : "r", "b" : ["#, #"], "r" : 3 } }"#, 3),
            (#"{"\"d":{"r":1},"dd":{"r":2},"d":{"rr":3,"x\"r":4,"b":["#, #"],"r":5}}"#, 5),
            (#"{"t":"d","d":{"a":"p","b":["#, #"]}}"#, nil),
            (#"{"x":[{"r":1},{"d":{"r":2}},["#, #"]]}"#, nil),
        ] as [(String, String, Int64?)])
    func namesTheRequestThatIsTooLarge(_ head: String, _ tail: String, _ number: Int64?) throws {
        let bytesMax = 1 << 20
        let filling = #""\"{[r:,"# + String(repeating: "€", count: bytesMax / 3) + #"""#
        let frames = RealtimeFrameSplitter.frames(of: Array((head + filling + tail).utf8))
        var joiner = RealtimeFrameJoiner()
        joiner.messageBytesMax = bytesMax
        for frame in frames.dropLast() {
            #expect(try joiner.receive(frame) == nil)
            #expect(joiner.heldBytes < 2 * bytesMax)
        }
        let last = try #require(frames.last)
        if let number {
            #expect(try joiner.receive(last) == .tooLarge(request: number))
            #expect(joiner.heldBytes == 0)
            // The next message is read normally.
            #expect(try joiner.receive(Array("{}".utf8)).flatMap(whole).map(string) == "{}")
        } else {
            #expect(throws: RealtimeFault.self) { try joiner.receive(last) }
        }
    }

    @Test func piecesThatNoSDKSendsAreNotWaitedFor() throws {
        var joiner = RealtimeFrameJoiner()
        _ = try joiner.receive(Array("9999".utf8))
        #expect(try joiner.receive([UInt8](repeating: 0x20, count: Limits.realtimeMessageBytesMax)) == nil)
        #expect(throws: RealtimeFault.self) { try joiner.receive([UInt8](repeating: 0x20, count: 50_000)) }
    }

    @Test func splitsAtUnitsWithoutCuttingCharacters() throws {
        // Units of UTF-16 by character: 1, 1, 1, 2.
        for (character, units) in [("a", 1), ("é", 1), ("€", 1), ("😀", 2)] {
            for count in [8, 8190, 8191, 8192, 16380, 16384, 16390, 40_000] {
                let message = Array(("{\"k\":\"" + String(repeating: character, count: count) + "\"}").utf8)
                let frames = RealtimeFrameSplitter.frames(of: message)
                let total = 8 + units * count
                if total <= RealtimeFrameSplitter.pieceUnitsMax {
                    #expect(frames == [message])
                    continue
                }
                #expect(string(frames[0]) == String(frames.count - 1))
                #expect(Array(frames.dropFirst().joined()) == message)
                for frame in frames.dropFirst() {
                    let piece = try #require(String(validating: frame, as: UTF8.self))
                    #expect(piece.utf16.count <= RealtimeFrameSplitter.pieceUnitsMax)
                    #expect(!piece.isEmpty)
                }
                var joiner = RealtimeFrameJoiner()
                var joined: [UInt8]?
                for frame in frames { joined = try joiner.receive(frame).flatMap(whole) }
                #expect(joined == message)
            }
        }
    }
}
