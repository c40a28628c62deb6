import HearthToolSupport

/// `hearth help [command]`
enum HelpCommand {
    static let command = ToolCommand(
        name: "help", summary: "Explain a command.",
        help: { overview() },
        run: { arguments throws(ToolFailure) in
            let parsed = try ParsedOptions(arguments, options: [], argumentsMax: 1)
            guard let name = parsed.arguments.first else { return Output.line(overview()) }
            Output.line(try Tool.command(name).help())
        })

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
