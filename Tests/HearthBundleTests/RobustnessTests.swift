import HearthFuzzing
import Foundation
import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthBundle

/// Any input is read or rejected, in pieces as in one part. The fuzz target runs the same function.
@Suite struct RobustnessTests {
    static let seed: [UInt8] = {
        let documents = found("a/b", fields: #"{"x":{"integerValue":"1"},"é":{"stringValue":"ü"}}"#)
        return bundle(
            metadata(documents: 2),
            #"{"namedQuery":{"name":"q","bundledQuery":{"parent":"\#(TestData.root)","structuredQuery":"#
                + #"{"from":[{"collectionId":"a"}],"limit":{"value":2}},"limitType":"LAST"},"#
                + #""readTime":{"seconds":"1714557610","nanos":5}}}"#,
            missing("a/c", queries: #"["q"]"#), documents[0], documents[1])
    }()

    @Test func theSeedIsABundle() {
        #expect(Reading(Self.seed).failure == nil)
        BundleFuzzing.fuzz(Self.seed)
    }

    @Test(arguments: [11, 12, 13] as [UInt64])
    func mutationsAreReadOrRefused(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<400 {
            var bytes = Self.seed
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let position = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[position] = .random(in: 0...255, using: &random)
                case 1: bytes.remove(at: position)
                case 2: bytes.insert(bytes.randomElement(using: &random)!, at: position)
                default: bytes.removeSubrange(position..<min(position + 40, bytes.count))
                }
            }
            BundleFuzzing.fuzz(bytes)
        }
    }

    @Test func everyByteReplacedIsReadOrRefused() {
        for position in Self.seed.indices {
            var bytes = Self.seed
            bytes[position] ^= 0x01
            BundleFuzzing.fuzz(bytes)
        }
    }

    @Test func deepNestingIsRefused() throws {
        let depth = 5000
        let value =
            String(repeating: #"{"arrayValue":{"values":["#, count: depth) + #"{"nullValue":null}"#
            + String(repeating: "]}}", count: depth)
        let elements = found("a/b", fields: #"{"x":\#(value)}"#)
        let failure = try #require(Reading(bundle(metadata(documents: 1), elements[0], elements[1])).failure)
        #expect(failure.code == .dataLoss)
    }

    /// Ten thousand documents in pieces of 64 KiB. A debug build is far slower than a release; the bound only detects
    /// work that grows with the square of the size.
    @Test func tenThousandDocumentsAreReadInLinearTime() throws {
        var builder = try BundleBuilder(id: "many")
        for number in 0..<10_000 {
            let fields = MapValue([
                .init(name: "name", value: .string("document \(number)")),
                .init(name: "n", value: .integer(Int64(number))),
                .init(name: "tags", value: .array([.string("a"), .string("b"), .double(0.5)])),
            ])
            try builder.add(BuilderTests.document("many/\(number)", fields), readTime: BuilderTests.now)
        }
        let bytes = try builder.build()
        let start = threadSeconds()
        var reader = BundleReader(database: TestData.database)
        var count = 0
        var position = 0
        while !reader.isAtEnd {
            if position < bytes.count {
                let end = min(position + 65_536, bytes.count)
                reader.feed(bytes[position..<end])
                position = end
            } else {
                reader.finish()
            }
            while try reader.next() != nil { count += 1 }
        }
        let seconds = threadSeconds() - start
        #expect(count == 10_001)
        #expect(seconds < 20, "\(seconds) s for \(bytes.count) bytes")
    }
}
