import HearthHost
import HearthToolSupport
import HearthModel
import HearthServer
import HearthTree

/// `hearth database`
enum DatabaseCommand {
    static let command = ToolCommand(
        name: "database", summary: "Read and write a Realtime Database.", options: options, verbs: verbs,
        help: { help() },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options =
        ServerConnection.options(defaultAddress: "FIREBASE_DATABASE_EMULATOR_HOST") + ownOptions
    private static let verbs = ["get", "set", "update", "push", "remove", "export", "import"]
    private static let ownOptions = [
        Option("namespace", "NAME", aliases: ["ns", "instance"], "Which database. Default: the server's own."),
        Option(
            "file", "FILE", aliases: ["f"], "The input file; - for standard input, the default. Also -f."),
        Option("output", "FILE", aliases: ["o"], "The output file; - for standard output, the default. Also -o."),
        Option("pretty", nil, "get: indented."),
        Option("shallow", nil, "get: the names of the children only."),
        Option("priorities", nil, "get: with priorities, as export writes."),
        Option("order-by", "CHILD", "get: a path in each child, $key, $value or $priority."),
        Option("start-at", "VALUE", "get: from here on. JSON or a string, as for the next four."),
        Option("start-after", "VALUE", "get: from after here."),
        Option("end-at", "VALUE", "get: up to here."),
        Option("end-before", "VALUE", "get: up to before here."),
        Option("equal-to", "VALUE", "get: only these."),
        Option("limit-to-first", "N", "get: the first of them."),
        Option("limit-to-last", "N", "get: the last of them."),
        Option("merge", nil, "import: replace the children that the file has, and leave the others."),
    ]

    private static func help() -> String {
        """
        Usage: hearth database get PATH [options]
               hearth database set|update|push PATH [DATA] [options]
               hearth database remove PATH [options]
               hearth database export [PATH] [-o FILE] [options]
               hearth database import [PATH] [-f FILE] [options]

        get     prints the data at a location, or the result of a query.
        set     replaces the data at a location; update replaces children by their paths; push adds a child and prints
                its name; remove deletes. DATA is JSON; without it, it is read from --file.
        export  writes the data of any size at a location, with priorities.
        import  replaces the data by such a file; a large one in several steps.

            hearth database set scores '{"ann": 7, "bob": 9}'
            hearth database get scores --order-by '$key' --limit-to-last 1
            hearth database export / -o backup.json

        \(OptionHelp.string(options))

        Exit codes: 0 all is well, 1 the server refused, 64 wrong usage, 69 the server can't be reached, 73 a file can't be
        used.
        """
    }

    private static func run(_ words: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(words, options: options, argumentsMax: 3)
        guard let verb = parsed.arguments.first else {
            throw .usage("Expected \(verbs.joined(separator: ", ")): see `hearth help database`.")
        }
        let arguments = Array(parsed.arguments.dropFirst())
        let takesData = ["set", "update", "push"].contains(verb)
        if arguments.count > (takesData ? 2 : 1) { throw .usage("Unexpected argument \"\(arguments.last ?? "")\".") }
        let mayBeRoot = verb == "export" || verb == "import"
        guard let argument = arguments.first ?? (mayBeRoot ? "/" : nil) else { throw .usage("The path is missing.") }
        let path = TreePath(argument)
        let connection = try DatabaseConnection(parsed)
        defer { connection.close() }
        switch verb {
        case "get": try get(path, parsed, connection)
        case "set", "update", "push": try write(verb, path, arguments.dropFirst().first, parsed, connection)
        case "remove": _ = try connection.request("DELETE", path, [("print", "silent")])
        case "export": try DatabaseExport.run(path, to: try FileOutput(parsed.string("output")), connection)
        case "import":
            try DatabaseImport.run(
                path, try FileInput(parsed.string("file")), merges: parsed.flag("merge"), to: connection)
        default:
            throw .usage("There is no verb \"\(verb)\"\(Spelling.hint(for: verb, among: verbs))")
        }
    }

    // MARK: Reading

    private static func get(_ path: TreePath, _ parsed: ParsedOptions, _ connection: DatabaseConnection)
        throws(ToolFailure)
    {
        var parameters: [(String, String)] = []
        if parsed.flag("pretty") { parameters.append(("print", "pretty")) }
        if parsed.flag("shallow") { parameters.append(("shallow", "true")) }
        if parsed.flag("priorities") { parameters.append(("format", "export")) }
        if let order = parsed.string("order-by") { parameters.append(("orderBy", quoted(order))) }
        let bounds = [
            ("start-at", "startAt"), ("start-after", "startAfter"), ("end-at", "endAt"), ("end-before", "endBefore"),
            ("equal-to", "equalTo"),
        ]
        for (option, name) in bounds {
            if let value = parsed.string(option) { parameters.append((name, json(value))) }
        }
        for (option, name) in [("limit-to-first", "limitToFirst"), ("limit-to-last", "limitToLast")] {
            let limit = try parsed.integer(option, 1...Int(Int32.max), default: 0)
            if limit > 0 { parameters.append((name, String(limit))) }
        }
        let output = try FileOutput(parsed.string("output"))
        try connection.download(path, parameters, to: output)
        try output.write(parsed.flag("pretty") ? [] : [UInt8(ascii: "\n")])
        try output.finish()
    }

    private static func quoted(_ string: String) -> String {
        var bytes: [UInt8] = []
        TreeJSON.appendString(string, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A value on a command line: JSON or a string.
    private static func json(_ string: String) -> String {
        do throws(TreeDataError) {
            _ = try TreeJSON.value(Array(string.utf8))
            return string
        } catch {
            return quoted(string)
        }
    }

    // MARK: Writing

    private static func write(
        _ verb: String, _ path: TreePath, _ data: String?, _ parsed: ParsedOptions, _ connection: DatabaseConnection
    ) throws(ToolFailure) {
        let body: [UInt8]
        if let data {
            body = Array(data.utf8)
        } else {
            let input = try FileInput(parsed.string("file"))
            body = try input.readAll(sizeBytesMax: Limits.realtimeBodyBytesMax)
        }
        switch verb {
        case "set": _ = try connection.request("PUT", path, [("print", "silent")], body)
        case "update": _ = try connection.request("PATCH", path, [("print", "silent")], body)
        default:
            let answer = try connection.request("POST", path, [], body)
            do throws(TreeDataError) {
                Output.line(try TreeJSON.value(answer)["name"]?.string ?? "")
            } catch {
                throw ToolFailure(.failed, "The server's answer can't be read.")
            }
        }
    }
}
