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

    /// A file of the conformance data, which lies beside the checkout; nil when it isn't there.
    static func conformance(_ path: String) -> [UInt8]? {
        let root = folder.deletingLastPathComponent().deletingLastPathComponent()
        for base in ["../shared/conformance", "../../shared/conformance"] {
            if let data = try? Data(contentsOf: root.appending(path: base).appending(path: path)) {
                return [UInt8](data)
            }
        }
        return nil
    }
}
