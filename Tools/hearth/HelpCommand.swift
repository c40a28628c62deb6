import HearthHost
import HearthToolSupport

/// `hearth help [command [verb]]`
enum HelpCommand {
    static let command = ToolCommand(
        name: "help", summary: "Explain a command.",
        help: { overview() },
        run: { arguments throws(ToolFailure) in
            let parsed = try ParsedOptions(arguments, options: [], argumentsMax: 2)
            guard let name = parsed.arguments.first else { return Output.line(overview()) }
            let command = try Tool.command(name)
            // The help of a command has all of its verbs: `hearth help rules test` is that of `rules`.
            if parsed.arguments.count == 2, !command.verbs.contains(parsed.arguments[1]) {
                throw .usage(unknown(parsed.arguments[1], in: command))
            }
            Output.line(command.help())
        })

    private static func unknown(_ verb: String, in command: ToolCommand) -> String {
        if command.verbs.isEmpty { return "`hearth \(command.name)` has no verbs, found \"\(verb)\"." }
        let hint = Spelling.hint(for: verb, among: command.verbs)
        return "`hearth \(command.name)` has no verb \"\(verb)\"\(hint)"
    }

    static func overview() -> String {
        let width = (Tool.commands.map(\.name.count).max() ?? 0) + 3
        let list = Tool.commands.map { command in
            "  " + command.name + String(repeating: " ", count: width - command.name.count) + command.summary
        }
        return """
            Hearth: Cloud Firestore and the Realtime Database as one program.

            Usage: hearth COMMAND [options]

            \(list.joined(separator: "\n"))

            `hearth help COMMAND` lists the options of a command.
            """
    }
}
