import HearthModel
import HearthTree
import Testing

@testable import HearthRules

/// Typical rules of applications, each with reads and writes that they allow and deny: see `cases/database`.
@Suite struct DatabaseCommonRuleTests {
    static let names = [
        "admin-claims", "append-only", "blog", "chat-rooms", "comments-tree", "counters", "devices", "emails-as-keys",
        "files", "flags", "friends", "geofire", "invitations", "leaderboard", "open-and-locked", "orders",
        "owner-lists", "presence", "priorities", "profiles-email", "push-tokens", "rate-limit", "roles", "school",
        "survey", "tenants", "tic-tac-toe", "todo-shared", "typing-receipts", "usernames", "votes",
    ]

    private struct Wrong: Error {
        var string: String
    }

    /// A line: `allow` or `deny`, the operation, and the user.
    private struct Case {
        var isAllowed: Bool
        var action: String
        var path: String
        var rest: String
        var auth: TreeAuth?

        init(_ line: String) throws {
            var line = Substring(line)
            if let range = Self.last(" as ", in: line) {
                auth = try Self.auth(line[range.upperBound...])
                line = line[..<range.lowerBound]
            }
            let words = line.split(separator: " ", maxSplits: 2).map(String.init)
            guard words.count >= 2, words[0] == "allow" || words[0] == "deny" else { throw Wrong(string: String(line)) }
            isAllowed = words[0] == "allow"
            action = words[1]
            let rest = words.count > 2 ? words[2] : ""
            if action == "update" {
                (path, self.rest) = ("", rest)
            } else {
                let parts = rest.split(separator: " ", maxSplits: 1).map(String.init)
                (path, self.rest) = (parts[0], parts.count > 1 ? parts[1] : "")
            }
        }

        private static func last(_ string: String, in line: Substring) -> Range<String.Index>? {
            var index = line.endIndex
            while index > line.startIndex {
                index = line.index(before: index)
                if line[index...].hasPrefix(string) { return index..<line.index(index, offsetBy: string.count) }
            }
            return nil
        }

        private static func auth(_ string: Substring) throws -> TreeAuth {
            let parts = string.split(separator: " ", maxSplits: 1).map(String.init)
            let claims = parts.count > 1 ? try TreeJSON.value(Array(parts[1].utf8)).object ?? [] : []
            return databaseUser(parts[0], claims.map { ($0.name, $0.value) })
        }

        func verdict(_ rules: TreeRuleset, _ data: Node) throws -> Bool {
            switch action {
            case "read": return try rules.mayRead(TreePath(path), in: data, auth: auth)
            case "query":
                let parameters = rest.split(separator: "&").map {
                    $0.split(separator: "=", maxSplits: 1).map(String.init)
                }
                let query = try TreeQuery(rest: parameters.map { (name: $0[0], value: $0[1]) })
                return try rules.mayRead(TreePath(path), in: data, auth: auth, query: query)
            case "write":
                let node = try tree(rest).resolved(nowMilliseconds: databaseNow, old: data, at: TreePath(path))
                return try rules.mayWrite([TreeChange(path: TreePath(path), node: node)], to: data, auth: auth)
                    .isAllowed
            case "update":
                let update = try TreeJSON.merge(Array(rest.utf8), at: .root)
                return try rules.mayWrite(update.changes, to: data, auth: auth).isAllowed
            default: throw Wrong(string: action)
            }
        }
    }

    @Test(arguments: names)
    func verdicts(_ name: String) throws {
        let lines = try CaseFile.lines("database/\(name).txt")
        let dataAt = try #require(lines.firstIndex { $0.string == "--- data" })
        let casesAt = try #require(lines.firstIndex { $0.string == "--- cases" })
        let rules = try databaseRules(lines[..<dataAt].map(\.string).joined(separator: "\n"))
        let data = try tree(lines[(dataAt + 1)..<casesAt].map(\.string).joined(separator: "\n"))
        var verdicts: Set<Bool> = []
        for line in lines[(casesAt + 1)...] where !line.string.isEmpty {
            let test = try Case(line.string)
            verdicts.insert(test.isAllowed)
            #expect(try test.verdict(rules, data) == test.isAllowed, "\(name), line \(line.number): \(line.string)")
        }
        #expect(verdicts.count == 2, "rules that only allow or only deny prove little")
    }
}
