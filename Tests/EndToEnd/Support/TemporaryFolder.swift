import Foundation

/// A folder for one test. It is removed with its contents.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-e2e-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// - Returns: the file's path.
    func write(_ name: String, _ string: String) throws -> String {
        let file = "\(path)/\(name)"
        try Data(string.utf8).write(to: URL(fileURLWithPath: file))
        return file
    }
}
