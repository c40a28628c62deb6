import HearthToolSupport
import HearthModel
import HearthServer

/// `hearth bundle`
enum BundleCommand {
    static let command = ToolCommand(
        name: "bundle", summary: "Build and inspect data bundles.", options: options, verbs: ["build", "inspect"],
        help: { help() },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    static let options = [
        Option("definition", "FILE", "The content of the bundle, as JSON: see docs/reference/bundles.md."),
        Option("name", "ID", "The bundle's id. Default: that of the definition."),
        Option(
            "query", "NAME=QUERY",
            "A named query: a collection's path, *ID for a collection group, or JSON. May be repeated."),
        Option("document", "PATH", "A document by its path. May be repeated."),
        Option("output", "FILE", aliases: ["o"], "The bundle file; - for standard output, the default. Also -o."),
        Option("host", "ADDRESS:PORT", "A running server to read from."),
        Option("tls", nil, "Speak TLS with it."),
        Option("tls-ca", "FILE", "Trusted certificates (PEM) instead of the system's."),
        Option("credential", "FILE", "The secret of an administrator of the server. Default: \"owner\" is sent."),
        Option("data", "FOLDER", "A data folder that no server uses, instead of a server."),
        Option("project", "ID", "The project. Default: that of the definition, of .firebaserc, or demo-hearth."),
        Option("database", "ID", "The database. Default: that of the definition, or (default)."),
        Option("json", nil, "inspect: print JSON."),
    ]

    private static func help() -> String {
        """
        Usage: hearth bundle build (--host ADDRESS:PORT | --data FOLDER) [options]
               hearth bundle inspect FILE [--json]

        build    reads documents and results of queries, all at one time, and writes them as a bundle, which clients load
                 into their caches.
        inspect  lists what a bundle holds and whether a client could load it.

            hearth bundle build --host 127.0.0.1:8080 --project demo --name front-page \\
                --query latest=stories \\
                --query 'top={"collection": "stories", "conditions": [{"orderBy": ["stars", "desc"]}, {"limit": 10}]}' \\
                -o front-page.bundle

        \(OptionHelp.string(options))

        Exit codes: 0 all is well, 1 the bundle can't be built or loaded, 64 wrong usage, 69 the server can't be reached,
        73 the data folder or the output can't be used, 78 the definition is wrong.
        """
    }

    private static func run(_ words: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(words, options: options, argumentsMax: 2)
        switch (parsed.arguments.first, parsed.arguments.count) {
        case ("build", 1): try BundleBuildCommand.run(parsed)
        case ("inspect", 2): try BundleInspectCommand.run(parsed.arguments[1], asJSON: parsed.flag("json"))
        default: throw .usage("Expected `hearth bundle build` or `hearth bundle inspect FILE`.")
        }
    }
}
