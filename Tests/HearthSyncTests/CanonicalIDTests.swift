import Foundation
import HearthModel
import Testing

@testable import HearthSync

/// The external vectors of `Tests/Vectors`. A test fails when its vectors are missing.
enum Conformance {
    static func folder(_ name: String, environment: String? = nil) -> URL {
        if let environment, let path = ProcessInfo.processInfo.environment[environment] { return URL(filePath: path) }
        return URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Vectors").standardizedFileURL
            .appending(path: name)
    }

    static func json(_ folder: String, _ file: String) throws -> Any {
        let url = self.folder(folder).appending(path: file)
        return try JSONSerialization.jsonObject(with: Data(contentsOf: url))
    }
}

@Suite("Canonical ids")
struct CanonicalIDTests {
    @Test("Queries have the ids of the reference SDKs")
    func golden() throws {
        let file = try #require(
            try Conformance.json("value-ordering", "query-canonical-ids.json") as? [String: Any])
        let cases = try #require(file["cases"] as? [[String: Any]])
        #expect(cases.count == 21)
        for item in cases {
            let query = try SpecQuery.parse(try #require(item["query"]))
            #expect(query.canonicalID == item["canonicalId"] as? String)
        }
    }

    @Test("Targets are equal after encoding and decoding, and have one id")
    func roundTrip() throws {
        let file = try #require(
            try Conformance.json("value-ordering", "query-canonical-ids.json") as? [String: Any])
        let serializer = TargetSerializer(database: DatabaseName(project: "p"))
        for item in try #require(file["cases"] as? [[String: Any]]) {
            let target = try SpecQuery.parse(try #require(item["query"])).target
            let again = try serializer.target(serializer.message(target))
            #expect(again == target)
            #expect(again.canonicalID == target.canonicalID)
        }
    }
}
