/// One command of a program.
package struct ToolCommand: Sendable {
    package let name: String
    /// One line for the list of commands.
    package let summary: String
    /// Those that the help lists, for completions and the manual page.
    package let options: [Option]
    /// The words that may follow the command's name; empty when it has none of its own.
    package let verbs: [String]
    package let help: @Sendable () -> String
    package let run: @Sendable ([String]) throws(ToolFailure) -> Void

    package init(
        name: String, summary: String, options: [Option] = [], verbs: [String] = [],
        help: @escaping @Sendable () -> String,
        run: @escaping @Sendable ([String]) throws(ToolFailure) -> Void
    ) {
        self.name = name
        self.summary = summary
        self.options = options
        self.verbs = verbs
        self.help = help
        self.run = run
    }
}
