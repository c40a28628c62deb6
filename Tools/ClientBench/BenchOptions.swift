import Foundation

/// The options of the command line.
struct BenchOptions {
    static let measures = ["write", "call", "index", "start", "bundle", "idle"]
    var measures: [String] = []
    var server: (host: String, port: Int)?
    var folder = FileManager.default.temporaryDirectory.path
    /// How many starts `start` measures.
    var starts = 21

    init(_ arguments: [String]) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--server":
                guard let string = rest.popFirst(), let colon = string.lastIndex(of: ":"),
                    let port = Int(string[string.index(after: colon)...])
                else { Self.fail("--server expects HOST:PORT.") }
                server = (String(string[..<colon]), port)
            case "--folder":
                guard let string = rest.popFirst() else { Self.fail("--folder expects the name of a folder.") }
                folder = string
            case "--starts":
                guard let string = rest.popFirst(), let number = Int(string), number > 0 else {
                    Self.fail("--starts expects a number.")
                }
                starts = number
            case _ where Self.measures.contains(argument): measures.append(argument)
            default:
                Self.fail(
                    "\(argument) is none of: \(Self.measures.joined(separator: ", ")), --server, --folder, --starts.")
            }
        }
        if measures.isEmpty { measures = Self.measures.filter { $0 != "idle" || server != nil } }
        if measures.contains("idle"), server == nil { Self.fail("idle needs --server HOST:PORT.") }
    }

    private static func fail(_ message: String) -> Never {
        FileHandle.standardError.write(Data("hearth-client-bench: \(message)\n".utf8))
        exit(64)
    }
}
