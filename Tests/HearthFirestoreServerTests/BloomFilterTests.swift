import Foundation
import HearthModel
import HearthFirestoreServer
import Testing

/// Filters as Google's SDKs expect them, against the golden data of the iOS SDK.
@Suite("Bloom filter")
struct BloomFilterTests {
    private struct Proto: Decodable {
        struct Bits: Decodable {
            var bitmap: String?
            var padding: Int?
        }
        var bits: Bits?
        var hashCount: Int?
    }

    private struct Answers: Decodable { var membershipTestResults: String }

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../Vectors/bloom-filter").standardizedFileURL

    private static func hash(_ index: Int) -> BloomFilter.Hash {
        // Without MD5 the golden data differ.
        DocumentNameHash.md5("projects/project-1/databases/database-1/documents/coll/doc\(index)")
            ?? BloomFilter.Hash(digest: [UInt8](repeating: 0, count: 16))
    }

    @Test("Golden data", arguments: [1, 500, 5000, 50000], ["1", "01", "0001"])
    func golden(count: Int, rate: String) throws {
        let prefix = "Validation_BloomFilterTest_MD5_\(count)_\(rate)_"
        func read<Content: Decodable>(_ name: String, _: Content.Type) throws -> Content {
            try JSONDecoder().decode(Content.self, from: Data(contentsOf: Self.folder.appending(path: prefix + name)))
        }
        let proto = try read("bloom_filter_proto.json", Proto.self)
        let answers = Array(try read("membership_test_result.json", Answers.self).membershipTestResults)
        let bitmap = [UInt8](try #require(Data(base64Encoded: proto.bits?.bitmap ?? "")))
        let filter = try #require(
            BloomFilter(bitmap: bitmap, padding: proto.bits?.padding ?? 0, hashCount: proto.hashCount ?? 0))
        #expect(answers.count == 2 * count)
        let wrong = answers.indices.filter { filter.contains(Self.hash($0)) != (answers[$0] == "1") }
        #expect(wrong.isEmpty)
        if bitmap.isEmpty { return }
        // Our filter of the same size is equal.
        let empty = [UInt8](repeating: 0, count: bitmap.count)
        var ours = try #require(BloomFilter(bitmap: empty, padding: filter.padding, hashCount: filter.hashCount))
        for index in 0..<count { ours.insert(Self.hash(index)) }
        #expect(ours.bitmap == filter.bitmap, "the bitmaps differ")
    }

    @Test("A filter contains its entries, and few other values", arguments: [1, 2, 100, 10_000])
    func own(count: Int) {
        var filter = BloomFilter(count: count, falsePositiveRate: 0.0001)
        for index in 0..<count { filter.insert(Self.hash(index)) }
        #expect((0..<count).allSatisfy { filter.contains(Self.hash($0)) })
        #expect((count..<(count + 20_000)).count { filter.contains(Self.hash($0)) } <= 12)
    }

    @Test("Inconsistent parts are rejected")
    func invalid() {
        #expect(BloomFilter(bitmap: [1], padding: 8, hashCount: 1) == nil)
        #expect(BloomFilter(bitmap: [1], padding: -1, hashCount: 1) == nil)
        #expect(BloomFilter(bitmap: [1], padding: 0, hashCount: 0) == nil)
        #expect(BloomFilter(bitmap: [1], padding: 0, hashCount: -1) == nil)
        #expect(BloomFilter(bitmap: [], padding: 1, hashCount: 1) == nil)
        #expect(BloomFilter(bitmap: [], padding: 0, hashCount: 0)?.contains(Self.hash(1)) == false)
    }
}
