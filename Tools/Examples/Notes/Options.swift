import HearthFirestore

/// The command line.
struct Options {
    static let help = """
        hearth-notes [options] [command]

        Without a command it reads commands from the terminal, and shows changes as they come.

          list                 all notes, the latest first
          find TAG             notes with a tag
          add TEXT             a new note; words like #home are its tags
          edit ID TEXT         another text; the beginning of an id is enough
          delete ID
          watch                shows the notes anew with each change; Ctrl-C ends it
          sync                 sends what waits for the server, if it can be reached
          offline, online      leaves and joins the network

          --server HOST:PORT   default 127.0.0.1:8080
          --user NAME          whose notes; default "me"
          --token TOKEN        a signed token of the user's, for servers that ask for one
          --project ID         default demo-hearth
          --cache FOLDER       default $XDG_DATA_HOME/firestore or ~/.local/share/firestore
        """

    struct Misuse: LocalizedError {
        var errorDescription: String?
    }

    var host = "127.0.0.1"
    var port = 8080
    var user = "me"
    var token: String?
    var project = "demo-hearth"
    var cacheFolder: URL?
    var wantsHelp = false
    /// The command and its words.
    var command: [String] = []

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h", "help": wantsHelp = true
            case "--server": (host, port) = try Self.address(try Self.value(of: argument, &rest))
            case "--user": user = try Self.value(of: argument, &rest)
            case "--token": token = try Self.value(of: argument, &rest)
            case "--project": project = try Self.value(of: argument, &rest)
            case "--cache": cacheFolder = URL(fileURLWithPath: try Self.value(of: argument, &rest), isDirectory: true)
            case _ where argument.hasPrefix("--"):
                throw Misuse(errorDescription: "There is no option \(argument). --help shows all.")
            default:
                // All further arguments belong to the command: a note's text may begin with dashes.
                command = [argument] + rest
                return
            }
        }
    }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws -> String {
        guard let value = rest.popFirst(), !value.isEmpty else {
            throw Misuse(errorDescription: "\(option) needs a value. --help shows all options.")
        }
        return value
    }

    private static func address(_ string: String) throws -> (String, Int) {
        guard let colon = string.lastIndex(of: ":"), colon != string.startIndex,
            let port = Int(string[string.index(after: colon)...]),
            (1...65535).contains(port)
        else { throw Misuse(errorDescription: "--server needs HOST:PORT, but got \(string).") }
        return (String(string[..<colon]), port)
    }
}
