import Foundation
import HearthDocuments
import HearthEngine
import HearthExport
import HearthModel
import HearthTestSupport
import HearthWire
import Synchronization

@testable import HearthFirestoreServer

/// The exports of `Tests/Vectors/export`, and databases.
enum TransferData {
    static let vectors =
        URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../Vectors/export").standardizedFileURL.path(percentEncoded: false) + "/"

    static func folder(_ name: String) -> String { vectors + name + (name == "suite" ? "/firestore_export" : "") }

    /// The documents of an NDJSON file in the vectors, by path.
    static func lines(_ name: String) throws -> [String: [UInt8]] {
        let path = vectors + name + ".ndjson"
        guard FileManager.default.fileExists(atPath: path) else { return [:] }
        let reader = LineReader(try FileSource(path))
        var documents: [String: [UInt8]] = [:]
        while let document = try reader.next() { documents[document.path] = document.fields }
        return documents
    }

    /// The documents of an export, by path.
    static func export(_ path: String) throws -> [String: [UInt8]] {
        let reader = try ExportFolder(path).reader()
        var documents: [String: [UInt8]] = [:]
        while let document = try reader.next(validates: true) { documents[document.path] = document.fields }
        return documents
    }

    /// The documents of a database, by path.
    static func documents(_ database: Database) throws -> [String: [UInt8]] {
        let view = try database.view()
        var documents: [String: [UInt8]] = [:]
        for key in try view.documentKeys(of: nil, after: nil, limit: 1_000_000) {
            let path = String(decoding: DocumentKey.pathBytes(key) ?? [], as: UTF8.self)
            documents[path] = try view.document(key: key)?.fields
        }
        return documents
    }

    static func names(_ path: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: path).sorted()
    }

    /// A copy that may be changed.
    static func copy(_ path: String, to folder: TemporaryFolder) throws -> String {
        let copy = folder.path + "/copy"
        try? FileManager.default.removeItem(atPath: copy)
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        return copy
    }

    /// The one file of an export whose name ends in this way.
    static func file(_ suffix: String, in path: String) throws -> String {
        let names = try names(path).filter { $0.hasSuffix(suffix) }
        precondition(names.count == 1, "\(names)")
        return path + "/" + names[0]
    }

    struct Damage: Decodable {
        var base: String
        var name: String
        var file: String
        var `do`: String
        var at: Int

        static func all() throws -> [Damage] {
            try JSONDecoder().decode(
                [Damage].self, from: Data(contentsOf: URL(filePath: TransferData.vectors + "damaged.json")))
        }

        /// A damaged copy of its export.
        func make(in folder: TemporaryFolder) throws -> String {
            let copy = try TransferData.copy(TransferData.folder(base), to: folder)
            let suffix = ["output": "output-0", "metadata": ".export_metadata", "overall": ".overall_export_metadata"]
            let path = try TransferData.file(suffix[file] ?? "", in: copy)
            var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
            switch self.do {
            case "flip": bytes[at] ^= 1
            case "cut": bytes = Array(bytes[..<at])
            default: try FileManager.default.removeItem(atPath: path)
            }
            if self.do != "remove" { try Data(bytes).write(to: URL(filePath: path)) }
            return copy
        }
    }
}

/// Counts the documents of commits that make events.
final class CountingRecorder: EventRecorder {
    private let documents = Atomic(0)

    var count: Int { documents.load(ordering: .relaxed) }

    func record(_ set: ChangeSet, by author: [UInt8], in transaction: any StoreTransaction) {
        documents.add(set.changes.count, ordering: .relaxed)
    }

    func ended(isDurable: Bool) {}
    func clear(in transaction: any StoreTransaction) {}
    var neededVersion: Int64? { nil }
}
