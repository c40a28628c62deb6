/// One command of a program.
package struct ToolCommand: Sendable {
    package let name: String
    /// One line for the list of commands.
    package let summary: String
    package let help: @Sendable () -> String
    package let run: @Sendable ([String]) throws(ToolFailure) -> Void

    package init(
        name: String, summary: String, help: @escaping @Sendable () -> String,
        run: @escaping @Sendable ([String]) throws(ToolFailure) -> Void
    ) {
        self.name = name
        self.summary = summary
        self.help = help
        self.run = run
    }
}
