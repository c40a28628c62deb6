import HearthToolSupport
import Glibc
import HearthNetwork
import HearthHost

/// The commands of `hearth`, by name.
enum Tool {
    static let commands: [ToolCommand] = [
        ServeCommand.command, HealthCommand.command, CheckCommand.command, BackupCommand.command,
        RestoreCommand.command,
        RulesCommand.command, BundleCommand.command, ExportCommand.command, ImportCommand.command,
        DatabaseCommand.command, TriggersCommand.command,
        TokenCommand.command, BenchCommand.command,
        CompletionCommand.command, ManualCommand.command, VersionCommand.command, HelpCommand.command,
    ]

    static func main() -> Never {
        ToolProcess.run(named: "hearth") { arguments throws(ToolFailure) in try run(arguments) }
    }

    static func run(_ arguments: [String]) throws(ToolFailure) {
        try dispatch(arguments)
        // What the server prints at its start is not its result.
        if arguments.first != ServeCommand.command.name { try Output.checkWritten() }
    }

    private static func dispatch(_ arguments: [String]) throws(ToolFailure) {
        guard let name = arguments.first else {
            Output.line(HelpCommand.overview())
            return
        }
        let rest = Array(arguments.dropFirst())
        switch name {
        case "--help", "-h": Output.line(HelpCommand.overview())
        case "--version": try VersionCommand.command.run(rest)
        default:
            let command = try command(name)
            if rest.contains("--help") || rest.contains("-h") {
                Output.line(command.help())
            } else {
                try command.run(rest)
            }
        }
    }

    static func command(_ name: String) throws(ToolFailure) -> ToolCommand {
        guard let command = commands.first(where: { $0.name == name }) else {
            let hint = Spelling.hint(for: name, among: commands.map(\.name))
            throw .usage("There is no command \"\(name)\"\(hint) See `hearth help`.")
        }
        return command
    }
}
