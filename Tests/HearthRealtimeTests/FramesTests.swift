import HearthModel
import Testing

@testable import HearthServer

@Suite struct FramesTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func joinsPiecesAndIgnoresKeepAlives() throws {
        var joiner = RealtimeFrameJoiner()
        #expect(try joiner.receive(Array("0".utf8)) == nil)
        #expect(try joiner.receive(Array("{}".utf8)).map(text) == "{}")
        #expect(try joiner.receive(Array("3".utf8)) == nil)
        #expect(try joiner.receive(Array("{\"a\"".utf8)) == nil)
        #expect(try joiner.receive(Array(":12".utf8)) == nil)
        #expect(try joiner.receive(Array("3}".utf8)).map(text) == "{\"a\":123}")
        #expect(try joiner.receive(Array("0".utf8)) == nil)
        #expect(try joiner.receive(Array("{}".utf8)).map(text) == "{}")
    }

    @Test func aNumberWithinPiecesIsAPiece() throws {
        var joiner = RealtimeFrameJoiner()
        #expect(try joiner.receive(Array("2".utf8)) == nil)
        #expect(try joiner.receive(Array("0".utf8)) == nil)
        #expect(try joiner.receive(Array("1".utf8)).map(text) == "01")
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
                #expect(text(frames[0]) == String(frames.count - 1))
                #expect(Array(frames.dropFirst().joined()) == message)
                for frame in frames.dropFirst() {
                    let piece = try #require(String(validating: frame, as: UTF8.self))
                    #expect(piece.utf16.count <= RealtimeFrameSplitter.pieceUnitsMax)
                    #expect(!piece.isEmpty)
                }
                var joiner = RealtimeFrameJoiner()
                var joined: [UInt8]?
                for frame in frames { joined = try joiner.receive(frame) }
                #expect(joined == message)
            }
        }
    }
}
