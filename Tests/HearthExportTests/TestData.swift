import Foundation
import HearthExport
import HearthModel
import HearthTestSupport
import HearthWire

/// The exports of `Tests/Vectors/export`, and documents.
enum TestData {
    static let vectors =
        URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../Vectors/export").standardizedFileURL.path(percentEncoded: false) + "/"

    /// Folders with an NDJSON file each.
    static let exports = [
        "types", "named-database", "blocks", "production-form", "production-form-filtered", "suite", "empty",
    ]

    static func folder(_ name: String) -> String { vectors + name + (name == "suite" ? "/firestore_export" : "") }

    static func read(_ path: String, validates: Bool = true) throws -> [String: ExportedDocument] {
        let reader = try ExportFolder(path).reader()
        var documents: [String: ExportedDocument] = [:]
        while let document = try reader.next(validates: validates) { documents[document.path] = document }
        precondition(reader.documentCount == documents.count)
        return documents
    }

    /// The documents of an NDJSON file, by path; none when there is no file.
    static func lines(_ name: String) throws -> [String: [UInt8]] {
        let path = vectors + name + ".ndjson"
        guard FileManager.default.fileExists(atPath: path) else { return [:] }
        let reader = LineReader(try FileSource(path))
        var documents: [String: [UInt8]] = [:]
        while let document = try reader.next() { documents[document.path] = document.fields }
        return documents
    }

    static func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(filePath: path))) }

    static func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: URL(filePath: path)) }

    /// A copy that may be changed.
    static func copy(_ path: String, to folder: TemporaryFolder) throws -> String {
        let copy = folder.path + "/copy"
        try? FileManager.default.removeItem(atPath: copy)
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        return copy
    }

    /// The one file of an export whose name ends in this way.
    static func file(_ suffix: String, in path: String) throws -> String {
        let names = try FileManager.default.subpathsOfDirectory(atPath: path).filter { $0.hasSuffix(suffix) }
        precondition(names.count == 1, "\(names)")
        return path + "/" + names[0]
    }

    static func message(of body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            return (error as? Status)?.message ?? "\(error)"
        }
    }
}

/// Random documents of all types.
struct RandomDocuments {
    var random: SeededGenerator

    mutating func document() -> (path: String, fields: MapValue) {
        var path = ""
        for depth in 0...random.below(4) { path += (depth == 0 ? "" : "/") + id() + "/" + documentID() }
        return (path, map(depth: 1))
    }

    private mutating func id() -> String { random.pick(["a", "users", "ü", "col lection", "x.y", "__a", "projects"]) }

    private mutating func documentID() -> String {
        random.chance(30) ? "__id\(Int64.random(in: .min ... .max, using: &random))__" : "\(id())\(random.below(1000))"
    }

    private mutating func map(depth: Int) -> MapValue {
        MapValue(
            (0..<random.below(6)).map { _ in
                MapValue.Field(
                    name: random.pick(["a", "b", "é", "long name", "x.y", "`", "Z"]), value: value(depth, false))
            })
    }

    private mutating func value(_ depth: Int, _ inArray: Bool) -> Value {
        switch random.below(depth > 4 ? 9 : 13) {
        case 0: .null
        case 1: .boolean(random.chance(50))
        case 2:
            .integer(random.pick([0, 1, -1, Int64.min, Int64.max, Int64.random(in: .min ... .max, using: &random)]))
        case 3: .double(random.pick([0, -0.0, .nan, .infinity, -.infinity, 1.5, .leastNonzeroMagnitude]))
        case 4:
            .timestamp(Timestamp(microseconds: random.pick([0, -1, -62_135_596_800_000_000, 253_402_300_799_999_999])))
        case 5:
            .string(random.pick(["", "x", "h\u{e9}\u{0}\u{1F600}", String(repeating: "y", count: random.below(3000))]))
        case 6: .bytes(random.bytes(random.below(300)))
        case 7: .reference("projects/\(random.pick(["p", "q"]))/databases/(default)/documents/\(id())/\(documentID())")
        case 8: .geoPoint(GeoPoint(latitude: random.pick([0, -0.0, 90, -12.5]), longitude: random.pick([0, 180, -7])))
        case 9, 10: .map(map(depth: depth + 1))
        case 11:
            inArray
                ? .map(map(depth: depth + 1))
                : .array((0..<random.below(5)).map { _ in value(depth + 1, true) })
        default: inArray ? .null : .vector((0...random.below(4)).map { Double($0) - 1.5 })
        }
    }
}
