/// The command line.
struct Options {
    static let help = """
        hearth-change-copy [options] FILE

        Copies a database of Cloud Firestore that Hearth serves into a SQLite file, and keeps the copy up to date: the table
        documents has a row for each document, with its fields as JSON. A copy that was ended, in any way, goes on where it was.

          --server URL         default http://127.0.0.1:8080
          --database P/D       project and database; default those of the server
          --document PATTERN   which documents, as orders/{id} or **; default all
          --token TOKEN        the credential of an administrator
          --once               ends at the present
        """

    struct Misuse: Error {
        var message: String
    }

    var server = "http://127.0.0.1:8080"
    var database: String?
    var pattern: String?
    var token: String?
    var isOnce = false
    var file = ""
    var wantsHelp = false

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": wantsHelp = true
            case "--server": server = try Self.value(of: argument, &rest)
            case "--database": database = try Self.value(of: argument, &rest)
            case "--document": pattern = try Self.value(of: argument, &rest)
            case "--token": token = try Self.value(of: argument, &rest)
            case "--once": isOnce = true
            case _ where argument.hasPrefix("--") || !file.isEmpty:
                throw Misuse(message: "There is no option \(argument). --help shows all.")
            default: file = argument
            }
        }
        if file.isEmpty, !wantsHelp { throw Misuse(message: "The name of the file is missing. --help shows all.") }
    }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws -> String {
        guard let value = rest.popFirst(), !value.isEmpty else {
            throw Misuse(message: "\(option) needs a value. --help shows all options.")
        }
        return value
    }

    /// The address of the feed behind a position; a snapshot first without one.
    func url(after position: String?) -> String {
        var url = server.hasSuffix("/") ? String(server.dropLast()) : server
        url += "/hearth/v1/changes"
        if let database { url += "/" + Self.encoded(database, besides: "/()") }
        url += "?before=false&wait=\(isOnce ? "0" : "forever")"
        if let pattern { url += "&document=" + Self.encoded(pattern, besides: "") }
        // Positions are made of letters, digits, - and _.
        return url + (position.map { "&after=\($0)" } ?? "&snapshot=true")
    }

    private static func encoded(_ string: String, besides plain: String) -> String {
        let digits = Array("0123456789ABCDEF")
        return string.utf8.reduce(into: "") { result, byte in
            let scalar = UnicodeScalar(byte)
            let isPlain =
                scalar.isASCII
                && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                    || "-._~".unicodeScalars.contains(scalar)
                    || plain.unicodeScalars.contains(scalar))
            result += isPlain ? String(scalar) : "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
        }
    }
}
