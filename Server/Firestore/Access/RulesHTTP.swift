import HearthHost
import HearthModel
import HearthNetwork
import HearthRules
import HearthWire

/// `PUT /emulator/v1/projects/P:securityRules`: replaces the rules of a project while the server runs, as the rules
/// testing libraries do; `GET` answers those in force. Only on servers for local development.
package struct RulesHTTP: HTTPExtension {
    private let rules: RulesRegistry

    package init(_ rules: RulesRegistry) {
        self.rules = rules
    }

    package func begin(_ exchange: HTTPExchange) -> Bool {
        let head = exchange.head
        let segments = URLCoding.segments(head.path)
        guard segments.count == 5, segments[1] == "emulator", segments[2] == "v1", segments[3] == "projects",
            let colon = segments[4].lastIndex(of: ":"), let project = URLCoding.decode(segments[4][..<colon])
        else { return false }
        switch (head.method, String(segments[4][colon...])) {
        case ("PUT", ":securityRules"): break
        case ("GET", ":securityRules"): answer(exchange, project)
        case ("GET", ":ruleCoverage"): answer(exchange, project, isPage: false)
        case ("GET", ":ruleCoverage.html"): answer(exchange, project, isPage: true)
        default: return false
        }
        if head.method == "GET" { return true }
        let call = RESTCall(exchange, isStreaming: false, options: JSONOptions())
        exchange.collectBody(limitBytes: Limits.requestSizeBytesMax) { result in
            do throws(Status) {
                call.respond(try replace(project, try result.get()))
            } catch {
                call.finish(error)
            }
        }
        return true
    }

    /// The rules that decide on the project's default database, as Google's emulator answers them.
    private func answer(_ exchange: HTTPExchange, _ project: String) {
        let name = DatabaseName(project: project, database: DatabaseName.defaultDatabase)
        var writer = JSONWriter()
        writer.raw("{\"rules\":{\"files\":[{\"content\":")
        writer.string(rules.ruleset(of: name)?.source ?? Self.openRules)
        // The name by which firebase-tools sends them.
        writer.raw(",\"name\":\"security.rules\"}]}}")
        RESTCall(exchange, isStreaming: false, options: JSONOptions()).respond(writer.bytes)
    }

    /// What a server for local development without rules allows.
    private static let openRules = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            match /{document=**} {
              allow read, write: if true;
            }
          }
        }
        """

    /// The coverage of the project's rules by requests.
    private func answer(_ exchange: HTTPExchange, _ project: String, isPage: Bool) {
        let string = rules.measured(project)?.withCoverage { isPage ? RulesCoveragePage.html($0) : $0.json() }
        let type = isPage ? "text/html; charset=utf-8" : "application/json; charset=UTF-8"
        let missing =
            "Coverage is counted for rules that are set by PUT \(exchange.head.path.prefix { $0 != ":" }):securityRules."
        exchange.respond(
            status: string == nil ? 404 : 200,
            headers: [HTTPHeader("content-type", string == nil ? "text/plain" : type)]
                + CORS.headers(for: exchange.head),
            body: Array((string ?? missing).utf8))
    }

    /// - Returns: the response body.
    private func replace(_ project: String, _ body: [UInt8]) throws(Status) -> [UInt8] {
        let request = try PlainJSON.object(body)
        guard case .map(let source)? = request["rules"], case .array(let files)? = source["files"],
            case .map(let file)? = files.first, case .string(let content)? = file["content"]
        else {
            throw .invalidArgument("Expected {\"rules\": {\"files\": [{\"content\": …}]}}.")
        }
        var name = ""
        if case .string(let string)? = file["name"] { name = string }
        let compilation = Ruleset.compile(content)
        if let ruleset = compilation.ruleset {
            rules.setProject(ruleset, project: project)
            return Self.answer(compilation.issues, file: name)
        }
        if request["ignore_errors"] == .boolean(true) || request["ignoreErrors"] == .boolean(true) {
            return Self.answer(compilation.issues, file: name)
        }
        let errors = compilation.issues.filter { $0.severity == .error }
        throw .invalidArgument(
            "Error compiling rules:\n"
                + errors.map { "L\($0.line):\($0.column) \($0.description)" }.joined(separator: "\n"))
    }

    private static func answer(_ issues: [RulesIssue], file: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{")
        if !issues.isEmpty {
            writer.raw("\"issues\":[")
            for (index, issue) in issues.enumerated() {
                if index > 0 { writer.raw(",") }
                writer.raw("{\"sourcePosition\":{")
                if !file.isEmpty {
                    writer.raw("\"fileName\":")
                    writer.string(file)
                    writer.raw(",")
                }
                writer.raw("\"line\":\(issue.line),\"column\":\(issue.column)},\"description\":")
                writer.string(issue.description)
                writer.raw(",\"severity\":\"\(issue.severity.rawValue)\"}")
            }
            writer.raw("]")
        }
        writer.raw("}")
        return writer.bytes
    }
}
