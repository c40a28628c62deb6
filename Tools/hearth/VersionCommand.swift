import HearthHost
import HearthToolSupport
import HearthServer

/// `hearth version`
enum VersionCommand {
    static let command = ToolCommand(
        name: "version", summary: "Print the version.",
        help: { "Usage: hearth version\n\nPrints the version of the program." },
        run: { arguments throws(ToolFailure) in
            _ = try ParsedOptions(arguments, options: [])
            Output.line("hearth \(HearthVersion.string)")
        })
}
