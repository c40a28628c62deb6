import HearthFuzzing
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

/// Any input is read or rejected. The fuzz target runs the same functions in a loop.
@Suite struct RobustnessTests {
    @Test(arguments: TestData.goldenMessages.indices)
    func everyTruncationIsAnsweredOrRefused(_ index: Int) throws {
        let golden = TestData.goldenMessages[index]
        let type = try #require(messageTypes[golden.type])
        let binary = bytes(hex: golden.hex)
        for count in 0..<binary.count {
            _ = refusal { () throws(Status) in try type.init(protobuf: Array(binary.prefix(count))).json() }
        }
        let json = Array(golden.json.utf8)
        for count in 0..<json.count {
            #expect(refusal { () throws(Status) in try type.init(json: Array(json.prefix(count))) } != nil)
        }
    }

    @Test(arguments: [21, 22, 23, 24] as [UInt64])
    func mutationsAreAnsweredOrRefused(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for golden in TestData.goldenMessages {
            let binary = bytes(hex: golden.hex)
            let json = Array(golden.json.utf8)
            for _ in 0..<6 {
                WireFuzzing.fuzzProtobuf(mutate(binary, &random))
                WireFuzzing.fuzzJSON(mutate(json, &random))
            }
        }
    }

    @Test(arguments: [31, 32] as [UInt64])
    func noiseIsAnsweredOrRefused(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let noise = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            WireFuzzing.fuzzProtobuf(noise)
            let letters = Array(#"{}[]",:\u0019.-eE truefalsn"#.utf8)
            WireFuzzing.fuzzJSON(noise.map { letters[Int($0) % letters.count] })
        }
    }

    /// Input that would cost more than its size, if a decoder read something twice.
    @Test func hostileShapesCostTheirSize() throws {
        // Entries with the value first and unknown fields after it, nested: reading a value again at each level would
        // double the work thirty times.
        var value: [UInt8] = [0x10, 1]
        for _ in 0..<30 {
            var entry = ProtobufWriter([0x0a, 1, 0x61, 0x12])
            entry.lengthDelimited(value)
            entry.bytes += [0x18, 1]
            var map = ProtobufWriter([0x0a])
            map.lengthDelimited(entry.bytes)
            var outer = ProtobufWriter([0x32])
            outer.lengthDelimited(map.bytes)
            value = outer.bytes
        }
        var cursor = ProtobufWriter([0x0a])
        cursor.lengthDelimited(value)
        #expect(try CursorMessage(protobuf: cursor.bytes).values.count == 1)

        // A map in descending order, with another field between any two entries: sorting at each entry would take
        // quadratic time.
        var document: [UInt8] = []
        for index in (0..<20_000).reversed() {
            let digits = Array(String(index + 100_000).utf8)
            document += [0x12, 12, 0x0a, 6] + digits + [0x12, 2, 0x10, 1, 0x0a, 1, 0x6e]
        }
        #expect(try DocumentMessage(protobuf: document).fields.count == 20_000)
    }

    @Test func labelsAreLimited() {
        var request: [UInt8] = []
        for index in 0..<1001 { request += [0x22, 6, 0x0a, 4] + Array(String(index + 1000).utf8) }
        #expect(
            refusal { () throws(Status) in try ListenRequest(protobuf: request) } == "There are more than 1000 labels.")
    }

    /// Some bytes are changed, removed, duplicated, or moved.
    private func mutate(_ input: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var output = input
        for _ in 0...Int.random(in: 0...3, using: &random) where !output.isEmpty {
            let index = Int.random(in: 0..<output.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: output[index] = .random(in: 0...255, using: &random)
            case 1: output[index] ^= 1 << UInt8.random(in: 0...7, using: &random)
            case 2: output.remove(at: index)
            case 3: output.insert(output[Int.random(in: 0..<output.count, using: &random)], at: index)
            default:
                let end = Int.random(in: index..<output.count, using: &random)
                output.insert(contentsOf: output[index...end], at: Int.random(in: 0...output.count, using: &random))
            }
        }
        return output
    }
}
