import Foundation
import HearthTestSupport

/// A copy of an example's folder, and the commands of its page.
struct Example {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    /// Where the programs of this build are: beside the tests.
    private static let programs = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().path

    /// Ends with the example and the programs in it.
    private let temporary = TemporaryFolder()
    let folder: URL
    /// The blocks of commands, in the order of the page.
    let commands: [String]

    init(_ name: String) throws {
        let source = Self.root.appendingPathComponent("Tools/Examples/\(name)")
        folder = URL(fileURLWithPath: temporary.path).appendingPathComponent(name)
        try FileManager.default.copyItem(at: source, to: folder)
        let page = try String(contentsOf: source.appendingPathComponent("README.md"), encoding: .utf8)
        commands = page.components(separatedBy: "```sh\n").dropFirst().map { block in
            String(block[..<(block.range(of: "```")?.lowerBound ?? block.endIndex)])
        }
    }

    /// Starts a block of commands in the folder.
    /// - Parameters:
    ///   - port: instead of the page's.
    ///   - user: has a cache, which the next program of the same user uses.
    func start(_ number: Int, port: Int, user: String = "") throws -> Terminal {
        try start(commands[number].replacing("8080", with: "\(port)"), user: user)
    }

    /// Starts commands, of which the last takes the process of the shell.
    func start(_ script: String, user: String = "") throws -> Terminal {
        var lines = script.replacing("swift run ", with: "").split(separator: "\n")
        // A command over several lines or within a structure is left as it is.
        if let last = lines.last, last.hasPrefix("hearth") { lines[lines.count - 1] = "exec \(last)" }
        // The tests' own variables would be settings of the server.
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HEARTH_") }
        environment["PATH"] = "\(Self.programs):\(environment["PATH"] ?? "/usr/bin:/bin")"
        environment["XDG_DATA_HOME"] = folder.appendingPathComponent("data-of-\(user)").path
        return try Terminal(lines.joined(separator: "\n"), in: folder, of: temporary, environment: environment)
    }

    /// Starts the server of the page's first block, and waits until it serves.
    func serve(port: Int = 0) async throws -> (server: Terminal, port: Int) {
        let server = try start(0, port: port)
        let line = try await server.line { $0.contains("FIRESTORE_EMULATOR_HOST=") }
        return (server, Int(line.split(separator: ":").last ?? "") ?? 0)
    }
}
