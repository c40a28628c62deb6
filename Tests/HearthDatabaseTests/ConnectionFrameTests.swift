import HearthTree
import Testing

@testable import HearthDatabase

/// Messages in frames, and frames to messages.
struct ConnectionFrameTests {
    private func join(_ frames: [[UInt8]]) -> [WireFrameJoiner.Outcome] {
        var joiner = WireFrameJoiner()
        return frames.map { joiner.take($0) }
    }

    @Test func shortMessagesAreOneFrame() {
        let string = [UInt8](repeating: UInt8(ascii: "x"), count: 16_384)
        #expect(WireFrames.frames(of: string) == [string])
        // 16 384 units of two bytes each.
        let umlauts = Array(String(repeating: "ä", count: 16_384).utf8)
        #expect(WireFrames.frames(of: umlauts) == [umlauts])
    }

    @Test(arguments: ["x", "ä", "€", "😀", "x😀", "€x😀ä"])
    func longMessagesAreCutAtUnits(_ part: String) {
        let string = String(repeating: part, count: 50_000)
        let frames = WireFrames.frames(of: Array(string.utf8))
        #expect(String(decoding: frames[0], as: UTF8.self) == "\(frames.count - 1)")
        for frame in frames.dropFirst() {
            let piece = String(validating: frame, as: UTF8.self)
            #expect(piece != nil)
            #expect((piece?.utf16.count ?? .max) <= 16_384)
        }
        let outcomes = join(frames)
        #expect(outcomes.dropLast().allSatisfy { $0 == .incomplete })
        #expect(outcomes.last == .message(Array(string.utf8)))
    }

    @Test func numbersAreCountsOnlyBeforeMessages() {
        #expect(join([Array("2".utf8), Array("3".utf8), Array("4".utf8)]).last == .message(Array("34".utf8)))
        #expect(join([Array("0".utf8), Array("{}".utf8)]) == [.incomplete, .message(Array("{}".utf8))])
        #expect(join([Array("1234567".utf8)]) == [.message(Array("1234567".utf8))])
        #expect(join([[]]) == [.incomplete])
    }

    @Test func joinedMessagesAreBounded() {
        var joiner = WireFrameJoiner()
        let piece = [UInt8](repeating: 0x20, count: 1 << 20)
        var outcome = joiner.take(Array("999999".utf8))
        for _ in 0..<257 where outcome == .incomplete { outcome = joiner.take(piece) }
        guard case .broken = outcome else {
            Issue.record("\(outcome)")
            return
        }
    }
}
