import HearthHost
import HearthJSON
import HearthModel
import HearthToolSupport
import HearthTriggers

/// `hearth triggers`
enum TriggersCommand {
    static let command = ToolCommand(
        name: "triggers", summary: "List, test, replay and check triggers.", options: ownOptions + serverOptions,
        verbs: verbs.map(\.name), help: { help() },
        run: { arguments throws(ToolFailure) in try run(try Call(arguments)) })

    private static let addressVariable = "FIRESTORE_EMULATOR_HOST"
    private static let ownOptions = [
        Option("document", "PATH", "test: a document that the trigger matches, by its path or its full name."),
        Option("ref", "PATH", "test: a location of the Realtime Database that the trigger matches."),
        Option("instance", "NAME", "test: the namespace of --ref, when the trigger is for more than one."),
        Option("dead-letters", nil, "replay: all dead letters, which then are none any more."),
        Option("since", "TIME", "replay: the events of all commits since then, such as 2026-11-22T19:17:22Z."),
        Option("delete", nil, "dead: delete all of them instead."),
        Option("json", nil, "Print JSON: what the server answers; of dead, a line for each dead letter."),
    ]
    private static let serverOptions = ServerConnection.options(defaultAddress: addressVariable)
    /// What each verb takes.
    private static let verbs: [(name: String, arguments: [String], options: [String])] = [
        ("list", [], ["json"]), ("show", ["NAME"], ["json"]),
        ("test", ["NAME"], ["document", "ref", "instance", "json"]),
        ("dead", ["NAME"], ["delete", "json"]), ("replay", ["NAME"], ["dead-letters", "since", "json"]),
        ("retry", ["NAME"], ["json"]),
        ("set", ["NAME", "FILE"], ["json"]), ("delete", ["NAME"], []), ("check", ["FILE"], []),
    ]
    /// As many bytes as the server takes.
    private static let definitionBytesMax = 64 << 10
    /// Dead letters of one request.
    private static let pageCount = 1000

    private static func help() -> String {
        """
        Usage: hearth triggers list [options]
               hearth triggers show NAME [options]
               hearth triggers test NAME (--document PATH | --ref PATH [--instance NAME]) [options]
               hearth triggers dead NAME [--delete] [options]
               hearth triggers replay NAME (--dead-letters | --since TIME) [options]
               hearth triggers retry NAME [options]
               hearth triggers set NAME FILE [options]
               hearth triggers delete NAME [options]
               hearth triggers check FILE

        list    prints the triggers of a server, their state and their figures; show prints all about one.
        test    has the server send the trigger's endpoint the event that there would be if the document, or the value of
                the location, were created, written anew or deleted now, as the trigger wants, and prints request and
                answer. Nothing is stored, and the event counts as no delivery. It has the header x-hearth-test: true, and an
                id of its own.
        dead    prints the events that were given up, the first to be given up first.
        replay  has events sent again, with the ids that they had.
        retry   has the events that wait for another attempt sent now, as when the function was mended, and their pauses begin
                anew.
        set     makes a trigger or replaces one, by a JSON file as it would be in hearth.json; - for standard input. Those
                of hearth.json itself are changed there.
        delete  ends a trigger, and drops its events and dead letters.
        check   reads the triggers of a hearth.json without a server, and prints the first error of each, and members of the
                file that are no settings.

            hearth triggers check hearth.json
            hearth triggers test aggregateRatings --document restaurants/a/ratings/b
            hearth triggers test presence --ref status/alice
            hearth triggers replay aggregateRatings --dead-letters

        \(OptionHelp.string(ownOptions + serverOptions))

        Exit codes: 0 all is well, 1 the server refused or the endpoint did not acknowledge a test, 64 wrong usage, 69 the
        server can't be reached, 73 a file can't be read, 78 the triggers of a file are wrong.
        """
    }

    // MARK: The command line

    /// What is wanted, with the options and arguments that belong to it.
    struct Call {
        let verb: String
        /// A trigger's, or of a file to check.
        let name: String
        let parsed: ParsedOptions

        /// - Throws: 64 for what does not belong together.
        init(_ words: [String]) throws(ToolFailure) {
            parsed = try ParsedOptions(words, options: ownOptions + serverOptions, argumentsMax: 3)
            guard let wanted = parsed.arguments.first else {
                throw .usage("Expected \(verbs.map(\.name).joined(separator: ", ")): see `hearth help triggers`.")
            }
            guard let verb = verbs.first(where: { $0.name == wanted }) else {
                throw .usage("There is no verb \"\(wanted)\"\(Spelling.hint(for: wanted, among: verbs.map(\.name)))")
            }
            guard parsed.arguments.count - 1 == verb.arguments.count else {
                throw .usage("Expected `hearth triggers \(([wanted] + verb.arguments).joined(separator: " "))`.")
            }
            let allowed = verb.options + (wanted == "check" ? [] : serverOptions.map(\.name))
            if let other = parsed.values.keys.sorted().first(where: { !allowed.contains($0) }) {
                throw .usage("`hearth triggers \(wanted)` has no option --\(other).")
            }
            self.verb = wanted
            name = parsed.arguments.count > 1 ? parsed.arguments[1] : ""
            if !verb.arguments.isEmpty, name.isEmpty { throw .usage("\(verb.arguments[0]) is empty.") }
            if wanted == "test", (parsed.string("document") == nil) == (parsed.string("ref") == nil) {
                throw .usage("Expected either --document PATH or --ref PATH.")
            }
            if parsed.string("instance") != nil, parsed.string("ref") == nil {
                throw .usage("--instance belongs to --ref.")
            }
            if wanted == "replay", parsed.flag("dead-letters") == (parsed.string("since") != nil) {
                throw .usage("Expected either --dead-letters or --since TIME.")
            }
        }

        var isJSON: Bool { parsed.flag("json") }
        var target: String { "/hearth/v1/triggers/\(URLCoding.encode(name))" }
    }

    private static func run(_ call: Call) throws(ToolFailure) {
        if call.verb == "check" { return try check(call.name) }
        // Before the connection: what is not there needs none.
        let definition = call.verb == "set" ? try definition(call.parsed.arguments[2]) : []
        let server = try TriggersServer(call.parsed, addressVariable)
        defer { server.close() }
        switch call.verb {
        case "list": try print(try server.request("GET", "/hearth/v1/triggers"), call, TriggersReport.list)
        case "show": try print(try server.request("GET", call.target), call, TriggersReport.one)
        case "test": try test(call, server)
        case "dead": try dead(call, server)
        case "replay": try replay(call, server)
        case "retry":
            try print(try server.request("POST", call.target + "/retry"), call) { answer throws(Status) in
                let count = try answer.count("pending")
                return
                    "\(CheckReport.count(count, "event")) \(count == 1 ? "waits" : "wait"): those that waited for another attempt are sent now."
            }
        case "set": try print(try server.request("PUT", call.target, definition), call, TriggersReport.one)
        default: _ = try server.request("DELETE", call.target)
        }
    }

    private static func definition(_ path: String) throws(ToolFailure) -> [UInt8] {
        let input = try FileInput(path)
        var bytes: [UInt8] = []
        while case let piece = try input.read(), !piece.isEmpty {
            bytes += piece
            if bytes.count > definitionBytesMax {
                throw ToolFailure(.failed, "A trigger's definition has at most \(definitionBytesMax >> 10) KiB.")
            }
        }
        return bytes
    }

    /// Prints an answer as it is, or for people.
    private static func print(
        _ answer: [UInt8], _ call: Call, _ report: (ConfigurationValue) throws(Status) -> String
    ) throws(ToolFailure) {
        if call.isJSON { return Output.line(String(decoding: answer, as: UTF8.self)) }
        Output.line(try TriggersServer.read(answer, report))
    }

    // MARK: Verbs

    private static func test(_ call: Call, _ server: TriggersServer) throws(ToolFailure) {
        var body = Array("{".utf8)
        for name in ["document", "ref", "instance"] {
            guard let value = call.parsed.string(name) else { continue }
            body += Array("\(body.count > 1 ? "," : "")\"\(name)\":".utf8)
            JSONTokens.append(value, to: &body)
        }
        body.append(UInt8(ascii: "}"))
        let answer = try server.request("POST", call.target + "/test", body)
        try print(answer, call, TriggersReport.test)
        if let failure = try TriggersServer.read(answer, TriggersReport.failure) {
            throw ToolFailure(.failed, "The endpoint did not acknowledge the event: \(failure)")
        }
    }

    private static func dead(_ call: Call, _ server: TriggersServer) throws(ToolFailure) {
        let target = call.target + "/dead-letters"
        if call.parsed.flag("delete") {
            return try print(try server.request("DELETE", target), call) { answer throws(Status) in
                "\(CheckReport.count(try answer.count("deadLetters"), "dead letter")) deleted."
            }
        }
        var after = ""
        while true {
            let page = try server.request("GET", "\(target)?limit=\(pageCount)" + after)
            let (lines, last) = try TriggersServer.read(page) { answer throws(Status) in
                try TriggersReport.deadLetters(answer, asJSON: call.isJSON)
            }
            guard let last else { return }
            Output.string(lines)
            after = "&after=" + URLCoding.encode(last)
        }
    }

    private static func replay(_ call: Call, _ server: TriggersServer) throws(ToolFailure) {
        var body = Array("{\"deadLetters\":true}".utf8)
        if let since = call.parsed.string("since") {
            body = Array("{\"since\":".utf8)
            JSONTokens.append(since, to: &body)
            body.append(UInt8(ascii: "}"))
        }
        try print(try server.request("POST", call.target + "/replay", body), call) { answer throws(Status) in
            let count = try answer.count("events")
            return "\(CheckReport.count(count, "event")) \(count == 1 ? "is" : "are") sent again."
        }
    }

    private static func check(_ path: String) throws(ToolFailure) {
        do throws(Status) {
            let (count, wrong) = try TriggerFile(path: path, project: "demo-hearth").check()
            let root = try ConfigurationValue(parsing: try TextFile.read(path) ?? [], file: path)
            let errors = try ServeResolution.unknownMembers(of: root) + wrong
            for error in errors { Output.line(error.message) }
            if errors.isEmpty { return Output.line("\(path): \(CheckReport.count(count, "trigger")).") }
            throw .invalidArgument("\(path): \(CheckReport.count(errors.count, "error")).")
        } catch {
            throw .configuration(error.message)
        }
    }
}

extension ConfigurationValue {
    /// A member that is a number of something.
    fileprivate func count(_ name: String) throws(Status) -> Int {
        guard let member = try member(name) else { throw failure("\"\(name)\" is missing.") }
        return try member.integer(0...Int(Int32.max))
    }
}

/// The administrators' interface of a server's triggers.
private struct TriggersServer {
    private let connection: ServerConnection

    init(_ parsed: ParsedOptions, _ variable: String) throws(ToolFailure) {
        connection = try ServerConnection(parsed, defaultAddress: variable)
    }

    func close() { connection.close() }

    /// - Returns: the body of the answer.
    /// - Throws: 1 when the server refuses.
    func request(_ method: String, _ target: String, _ body: [UInt8] = []) throws(ToolFailure) -> [UInt8] {
        let answer = try connection.request(method, target, body)
        if (200...299).contains(answer.status) { return answer.body }
        var message = String(decoding: answer.body.prefix(4096), as: UTF8.self)
        do throws(Status) {
            let error = try ConfigurationValue(parsing: answer.body, file: "answer").member("error")
            if let string = try error?.member("message")?.string() { message = string }
        } catch {
            // Another server than Hearth has answered, in a form of its own.
        }
        throw ToolFailure(
            .failed,
            "The server refuses (\(answer.status)): \(Printable.string(message))\(connection.hint(answer.status))")
    }

    static func read<Result>(
        _ answer: [UInt8], _ body: (ConfigurationValue) throws(Status) -> Result
    ) throws(ToolFailure) -> Result {
        do throws(Status) {
            return try body(try ConfigurationValue(parsing: answer, file: "answer"))
        } catch {
            throw ToolFailure(.failed, "The server's answer can't be read: \(Printable.string(error.message))")
        }
    }
}
