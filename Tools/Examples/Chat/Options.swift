import HearthDatabase

/// The command line.
struct Options {
    static let help = """
        hearth-chat [options]

        Each line of input is a line of the chat. Lines that begin with a slash are commands: /offline and /online leave and
        join the network, /quit ends the program, as the end of input does.

          --user NAME          who writes; default $USER
          --channel NAME       default lobby
          --server HOST:PORT   default 127.0.0.1:8080
          --project ID         default demo-hearth
        """

    /// What is wrong with the command line.
    struct Misuse: LocalizedError {
        var errorDescription: String?
    }

    /// What a key of the Realtime Database cannot contain.
    private static let forbidden: Set<Character> = [".", "#", "$", "[", "]", "/"]

    var user = ProcessInfo.processInfo.environment["USER"] ?? ""
    var channel = "lobby"
    var server = "127.0.0.1:8080"
    var project = "demo-hearth"
    var wantsHelp = false

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": wantsHelp = true
            case "--user": user = try Self.value(of: argument, &rest)
            case "--channel": channel = try Self.value(of: argument, &rest)
            case "--server": server = try Self.value(of: argument, &rest)
            case "--project": project = try Self.value(of: argument, &rest)
            default: throw Misuse(errorDescription: "There is no option \(argument). --help shows all.")
            }
        }
        for name in [user, channel] where name.isEmpty || name.contains(where: Self.forbidden.contains) {
            throw Misuse(errorDescription: "\"\(name)\" is no name: use --user and --channel, without . # $ [ ] and /.")
        }
    }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws -> String {
        guard let value = rest.popFirst() else {
            throw Misuse(errorDescription: "\(option) needs a value. --help shows all options.")
        }
        return value
    }
}
