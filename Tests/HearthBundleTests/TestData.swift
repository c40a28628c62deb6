import Foundation
import HearthModel
import HearthWire

@testable import HearthBundle

/// The bundles of `Tests/Vectors`.
enum TestData {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../Vectors/bundle").standardizedFileURL

    static func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: folder.appending(path: name)))
    }

    /// The list `cases` of a JSON file, each case as a JSON object.
    static func cases(_ name: String) throws -> [[String: Any]] {
        let object = try JSONSerialization.jsonObject(with: Data(try bytes(name))) as? [String: Any]
        return object?["cases"] as? [[String: Any]] ?? []
    }

    static func json(_ object: Any) throws -> [UInt8] {
        [UInt8](try JSONSerialization.data(withJSONObject: object))
    }

    static let database = DatabaseName(project: "test-project")
    static let root = "projects/test-project/databases/(default)/documents"
}

/// The complete output of a reader, and its end.
struct Reading {
    var elements: [BundleElement] = []
    /// Documents and bytes after each document.
    var progress: [[Int64]] = []
    var failure: Status?
    var reader: BundleReader

    /// - Parameter cuts: the positions at which the bytes are split.
    init(_ bytes: [UInt8], cuts: [Int] = [], database: DatabaseName? = TestData.database) {
        reader = BundleReader(database: database)
        do throws(Status) {
            var start = 0
            for end in cuts + [bytes.count] {
                reader.feed(bytes[start..<end])
                start = end
                try drain()
            }
            reader.finish()
            try drain()
        } catch {
            failure = error
        }
    }

    private mutating func drain() throws(Status) {
        while let element = try reader.next() {
            elements.append(element)
            switch element {
            case .metadata: progress.append([0, reader.bytesRead])
            case .document: progress.append([Int64(reader.documentCount), reader.bytesRead])
            case .namedQuery: break
            }
        }
    }

    var documents: [BundleDocument] {
        elements.compactMap { if case .document(let document) = $0 { document } else { nil } }
    }

    var queries: [BundleQuery] {
        elements.compactMap { if case .namedQuery(let query) = $0 { query } else { nil } }
    }
}

/// Elements preceded by their lengths.
func bundle(_ elements: String...) -> [UInt8] {
    elements.flatMap { Array("\($0.utf8.count)\($0)".utf8) }
}

func metadata(documents: Int, version: Int = 1) -> String {
    #"{"metadata":{"id":"x","createTime":"2024-05-01T10:00:10Z","version":\#(version),"totalDocuments":\#(documents)}}"#
}

func missing(_ path: String, queries: String = "[]") -> String {
    #"{"documentMetadata":{"name":"\#(TestData.root)/\#(path)","readTime":"2024-05-01T10:00:09Z","queries":\#(queries)}}"#
}

func found(_ path: String, fields: String = "{}") -> [String] {
    let name = "\(TestData.root)/\(path)"
    return [
        #"{"documentMetadata":{"name":"\#(name)","readTime":"2024-05-01T10:00:09Z","exists":true}}"#,
        #"{"document":{"name":"\#(name)","fields":\#(fields),"updateTime":"2024-05-01T10:00:08Z"}}"#,
    ]
}
