import Foundation
import HearthModel
import HearthWire

/// Files in the test folder, and the outside vectors of `Tests/Vectors`.
enum TestData {
    struct Golden: Sendable {
        var type: String
        var hex: String
        var json: String
    }

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    /// Messages from Google's library; the file names the version.
    static let goldenMessages: [Golden] = {
        guard let string = try? String(contentsOf: folder.appending(path: "Golden/messages.txt"), encoding: .utf8)
        else {
            preconditionFailure("Tests/HearthWireTests/Golden/messages.txt is missing")
        }
        let lines = string.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
        return stride(from: 0, to: lines.count, by: 3).map {
            Golden(type: lines[$0], hex: lines[$0 + 1], json: lines[$0 + 2])
        }
    }()

    // MARK: Outside vectors

    private static let vectorFolder = folder.deletingLastPathComponent().appending(path: "Vectors")

    static func vector(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: vectorFolder.appending(path: path)))
    }

    /// The names of the files of a folder, sorted.
    static func vectorFiles(_ path: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(
            atPath: vectorFolder.appending(path: path).path(percentEncoded: false)
        ).sorted()
    }
}
