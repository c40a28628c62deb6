import HearthToolSupport

/// `hearth completion`
enum CompletionCommand {
    static let command = ToolCommand(
        name: "completion", summary: "Print completions for a shell.",
        verbs: ShellCompletion.Shell.allCases.map(\.rawValue), help: { help },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let help = """
        Usage: hearth completion bash|zsh|fish

        Prints a script with which a shell completes the commands and options of hearth. Packages install it; otherwise:

            source <(hearth completion bash)
            hearth completion zsh > "${fpath[1]}/_hearth"
            hearth completion fish > ~/.config/fish/completions/hearth.fish
        """

    private static func run(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: [], argumentsMax: 1)
        guard let name = parsed.arguments.first, let shell = ShellCompletion.Shell(rawValue: name) else {
            throw .usage("Expected `hearth completion bash`, `zsh` or `fish`.")
        }
        Output.string(ShellCompletion(program: "hearth", commands: Tool.commands).script(for: shell))
    }
}
