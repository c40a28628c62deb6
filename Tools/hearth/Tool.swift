import Glibc
import HearthNetwork
import HearthServer

/// The commands of `hearth`, by name.
enum Tool {
    struct Command: Sendable {
        let name: String
        /// One line for the list of commands.
        let summary: String
        let help: @Sendable () -> String
        let run: @Sendable ([String]) throws(ToolFailure) -> Void
    }

    static let commands: [Command] = [
        ServeCommand.command, CheckCommand.command, RulesCommand.command, BundleCommand.command,
        DatabaseCommand.command, TokenCommand.command, BenchCommand.command, VersionCommand.command,
        HelpCommand.command,
    ]

    /// Not for people, so in no list.
    private static let hidden: [Command] = [ConstantCommand.command]

    static func main() -> Never {
        // A file that may not become larger is an ordinary error of the write, not the end of the process.
        signal(SIGXFSZ, SIG_IGN)
        ProcessMemory.giveBackLargeBlocks()
        do throws(ToolFailure) {
            try run(Array(CommandLine.arguments.dropFirst()))
            exit(0)
        } catch {
            Output.error("hearth: \(error.message)")
            exit(error.code.rawValue)
        }
    }

    static func run(_ arguments: [String]) throws(ToolFailure) {
        guard let name = arguments.first else {
            Output.line(HelpCommand.overview())
            return
        }
        let rest = Array(arguments.dropFirst())
        switch name {
        case "--help", "-h": Output.line(HelpCommand.overview())
        case "--version": try VersionCommand.command.run([])
        default:
            let command = try command(name)
            if rest.contains("--help") || rest.contains("-h") {
                Output.line(command.help())
            } else {
                try command.run(rest)
            }
        }
    }

    static func command(_ name: String) throws(ToolFailure) -> Command {
        guard let command = (commands + hidden).first(where: { $0.name == name }) else {
            let hint = Spelling.hint(for: name, among: commands.map(\.name))
            throw .usage("There is no command \"\(name)\"\(hint) See `hearth help`.")
        }
        return command
    }
}

/// Why a command ended without success: one plain sentence and the number that a script sees.
struct ToolFailure: Error, Equatable {
    /// The numbers are those of sysexits.h, which scripts know.
    enum Code: Int32 {
        /// The workload or the check failed; the program itself is well.
        case failed = 1
        case usage = 64
        /// The address is taken, or isn't this machine's; a server can't be reached.
        case unavailable = 69
        case software = 70
        /// The data folder can't be used.
        case data = 73
        /// A configuration file or a certificate is wrong.
        case configuration = 78
    }

    var code: Code
    var message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    static func usage(_ message: String) -> ToolFailure { ToolFailure(.usage, message) }
    static func configuration(_ message: String) -> ToolFailure { ToolFailure(.configuration, message) }
}

/// The two streams of a program, without the buffers and the shared state of the C library.
enum Output {
    /// Writes to standard output.
    static func line(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }

    static func text(_ text: String) { write(text, to: STDOUT_FILENO) }

    static func error(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

    private static func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            // There is nowhere to complain to.
            if count <= 0 { return }
            bytes = bytes.dropFirst(count)
        }
    }
}
