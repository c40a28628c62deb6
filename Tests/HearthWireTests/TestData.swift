import Foundation
import HearthModel
import HearthWire

/// Files beside the tests, and the public conformance data beside the checkout.
enum TestData {
    struct Golden: Sendable {
        var type: String
        var hex: String
        var json: String
    }

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    /// Messages as Google's library writes them; the file says which.
    static let goldenMessages: [Golden] = {
        guard let text = try? String(contentsOf: folder.appending(path: "Golden/messages.txt"), encoding: .utf8) else {
            preconditionFailure("Tests/HearthWireTests/Golden/messages.txt is missing")
        }
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
        return stride(from: 0, to: lines.count, by: 3).map {
            Golden(type: lines[$0], hex: lines[$0 + 1], json: lines[$0 + 2])
        }
    }()

    // MARK: Conformance data

    /// The public conformance data, which lies beside the checkout; nil when it isn't there.
    private static let conformanceFolder: URL? = {
        let root = folder.deletingLastPathComponent().deletingLastPathComponent()
        return ["../shared/conformance", "../../shared/conformance"].map { root.appending(path: $0) }
            .first { FileManager.default.fileExists(atPath: $0.path()) }
    }()

    static var hasConformanceData: Bool { conformanceFolder != nil }

    static func conformance(_ path: String) throws -> [UInt8] {
        guard let conformanceFolder else { throw CocoaError(.fileNoSuchFile) }
        return [UInt8](try Data(contentsOf: conformanceFolder.appending(path: path)))
    }

    /// The names of the files of a folder, sorted.
    static func conformanceFiles(_ path: String) throws -> [String] {
        guard let conformanceFolder else { throw CocoaError(.fileNoSuchFile) }
        return try FileManager.default.contentsOfDirectory(atPath: conformanceFolder.appending(path: path).path())
            .sorted()
    }
}
