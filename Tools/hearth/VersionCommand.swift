import HearthModel
import HearthHost
import HearthToolSupport

/// `hearth version`
enum VersionCommand {
    static let command = ToolCommand(
        name: "version", summary: "Print the version.",
        help: {
            "Usage: hearth version\n\nPrints the version of the program, and the commit that a release was built from."
        },
        run: { arguments throws(ToolFailure) in
            _ = try ParsedOptions(arguments, options: [])
            Output.line("hearth \(HearthVersion.withCommit)")
        })
}
