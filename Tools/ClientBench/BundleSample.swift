import Foundation

/// Bundles as strings, made without the measured library.
enum BundleSample {
    /// - Parameter count: documents of some 500 bytes in the collection `items`, 1,000 of each `shard` for 100,000.
    static func bytes(count: Int, name: String = "bench") -> Data {
        let root = "projects/demo-bench/databases/(default)/documents"
        let time = "2026-01-02T03:04:05.000000Z"
        let padding = String(repeating: "p", count: 240)
        var body = Data()
        for number in 0..<count {
            let document = "\(root)/items/\(name)-\(number)"
            append(
                "{\"documentMetadata\":{\"name\":\"\(document)\",\"readTime\":\"\(time)\",\"exists\":true}}", to: &body)
            append(
                "{\"document\":{\"name\":\"\(document)\",\"createTime\":\"\(time)\",\"updateTime\":\"\(time)\",\"fields\":{"
                    + "\"n\":{\"integerValue\":\"\(number)\"},\"shard\":{\"integerValue\":\"\(number % max(1, count / 100))\"},"
                    + "\"text\":{\"stringValue\":\"\(padding)\"}}}}", to: &body)
        }
        var bundle = Data()
        append(
            "{\"metadata\":{\"id\":\"\(name)\",\"createTime\":\"\(time)\",\"version\":1,"
                + "\"totalDocuments\":\(count),\"totalBytes\":\"\(body.count)\"}}", to: &bundle)
        bundle.append(body)
        return bundle
    }

    private static func append(_ element: String, to data: inout Data) {
        data.append(Data("\(element.utf8.count)\(element)".utf8))
    }
}
