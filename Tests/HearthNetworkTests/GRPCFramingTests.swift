import HearthModel
import Testing

@testable import HearthNetwork

private func frame(_ message: [UInt8], flag: UInt8 = 0) -> [UInt8] {
    let length = message.count
    return [flag, UInt8(length >> 24), UInt8(length >> 16 & 255), UInt8(length >> 8 & 255), UInt8(length & 255)]
        + message
}

private func deframe(_ bytes: [UInt8], pieceBytes: Int, messageBytesMax: Int = 1_000) -> [GRPCDeframer.Step] {
    var deframer = GRPCDeframer(messageBytesMax: messageBytesMax)
    var steps: [GRPCDeframer.Step] = []
    var start = 0
    while start < bytes.count {
        let piece = Array(bytes[start..<min(bytes.count, start + pieceBytes)])
        start += piece.count
        let isOver = piece.withUnsafeBytes { piece -> Bool in
            var position = 0
            while true {
                let step = deframer.next(piece, &position)
                if step == .needsMore { return false }
                steps.append(step)
                if case .failure = step { return true }
            }
        }
        if isOver { break }
    }
    return steps
}

@Suite struct GRPCFramingTests {
    @Test func aBatchHasItsMessagesAsTheyAreSent() {
        let messages: [[UInt8]] = [[], Array("hello".utf8), Array(repeating: 7, count: 70_000), [1], []]
        var batch = MessageBatch()
        #expect(batch.messages.isEmpty)
        for (index, message) in messages.enumerated() {
            if index % 2 == 0 {
                batch.append(message)
            } else {
                var bytes = batch.begin()
                bytes += message
                batch.end(&bytes)
            }
        }
        #expect(batch.count == messages.count)
        #expect(batch.bytes == messages.flatMap { frame($0) })
        #expect(batch.messages == messages)
    }

    @Test(arguments: 1...30)
    func messagesComeWholeHoweverTheyWereSplit(pieceBytes: Int) {
        let messages: [[UInt8]] = [Array("hello".utf8), [], Array(repeating: 7, count: 600), [1], []]
        let bytes = messages.flatMap { frame($0) } + frame([9], flag: 1)
        let steps = deframe(bytes, pieceBytes: pieceBytes)
        #expect(steps == messages.map { .message($0, isCompressed: false) } + [.message([9], isCompressed: true)])
    }

    @Test func refusesLargeMessagesAndBadFlags() {
        let tooLarge = deframe(frame(Array(repeating: 0, count: 1_001)), pieceBytes: 3)
        guard case .failure(let status) = tooLarge.last else {
            Issue.record("no failure")
            return
        }
        #expect(status.code == .resourceExhausted)
        guard case .failure(let malformed) = deframe([2, 0, 0, 0, 0], pieceBytes: 9).last else {
            Issue.record("no failure")
            return
        }
        #expect(malformed.code == .internal)
    }

    @Test func holdsNoMoreThanHasCome() {
        var deframer = GRPCDeframer(messageBytesMax: 1 << 30)
        let start: [UInt8] = [0, 0x3F, 0xFF, 0xFF, 0xFF, 1, 2, 3]
        start.withUnsafeBytes { bytes in
            var position = 0
            #expect(deframer.next(bytes, &position) == .needsMore)
        }
        #expect(deframer.heldBytes == 3)
        #expect(deframer.isMidMessage)
    }

    @Test func gzipRoundTrips() throws {
        for count in [0, 1, 100, 100_000] {
            let plain = (0..<count).map { UInt8(truncatingIfNeeded: $0 / 7) }
            let compressed = try #require(Gzip.compress(plain))
            #expect(try Gzip.decompress(compressed, limitBytes: count) == plain)
        }
    }

    @Test func gzipBombsAreRejected() throws {
        let bomb = try #require(Gzip.compress(Array(repeating: 0, count: 10_000_000)))
        #expect(bomb.count < 100_000)
        #expect(throws: Status.self) { try Gzip.decompress(bomb, limitBytes: 1_000_000) }
        #expect(throws: Status.self) { try Gzip.decompress(Array(bomb.dropLast(9)), limitBytes: 20_000_000) }
        #expect(throws: Status.self) { try Gzip.decompress([1, 2, 3], limitBytes: 100) }
        #expect(throws: Status.self) { try Gzip.decompress([], limitBytes: 100) }
    }

    @Test(
        arguments: [
            ("1n", 1), ("20u", 20_000), ("300m", 300_000_000), ("4S", 4_000_000_000), ("2M", 120_000_000_000),
            ("1H", 3_600_000_000_000), ("99999999S", 99_999_999_000_000_000), ("", nil), ("S", nil), ("1", nil),
            ("1x", nil),
            ("123456789S", nil), ("-1S", nil), ("1.5S", nil), (" 1S", nil),
        ] as [(String, UInt64?)])
    func readsTimeouts(string: String, nanoseconds: UInt64?) {
        #expect(GRPCTimeout.nanoseconds(string) == nanoseconds)
    }

    @Test func hoursDoNotOverflow() { #expect(GRPCTimeout.nanoseconds("99999999H") != nil) }

    @Test func percentEncodesMessages() {
        let string = "100% ü\r\n"
        #expect(String(decoding: GRPCStatusFields.percentEncoded(string), as: UTF8.self) == "100%25 %C3%BC%0D%0A")
        #expect(GRPCStatusFields.percentDecoded("100%25 %C3%BC%0D%0A") == string)
        #expect(GRPCStatusFields.percentDecoded("%zz%4") == "%zz%4")
    }

    @Test(arguments: [
        ("application/grpc", true), ("application/grpc+proto", true), ("Application/gRPC; a=b", true),
        ("application/grpc-web", false), ("application/grp", false), ("application/json", false), ("", false),
    ])
    func knowsItsContentType(string: String, isGRPC: Bool) { #expect(GRPCContentType.matches(string) == isGRPC) }

    @Test func prefixHasTheHighByteFirst() {
        GRPCPrefix(isCompressed: true, messageBytes: 0x0102_0304).withBytes { #expect(Array($0) == [1, 1, 2, 3, 4]) }
    }
}

@Suite struct GRPCRequestFieldsTests {
    @Test(arguments: [
        ("gzip", true), ("identity,gzip", true), ("identity, deflate, gzip", true), ("gzip ,x", true), ("", false),
        ("identity", false), ("gzipx", false), ("xgzip, zip", false), (",,", false),
    ])
    func findsAMemberOfAList(list: String, isThere: Bool) {
        let bytes = Array(list.utf8)
        #expect(bytes.withUnsafeBytes { GRPCRequestFields.lists($0, "gzip") } == isThere)
    }
}
