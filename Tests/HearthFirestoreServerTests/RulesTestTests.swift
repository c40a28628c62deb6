import HearthModel
import HearthRules
import HearthTestSupport
import Testing

@testable import HearthFirestoreServer
@testable import HearthHost

/// `:test` of a project and of a ruleset.
@Suite struct RulesTestTests {
    private static let source = #"""
        rules_version = '2';
        service cloud.firestore {
          match /databases/{db}/documents {
            match /notes/{id} {
              allow get: if request.auth.uid == resource.data.owner;
              allow create: if exists(/databases/$(db)/documents/users/$(request.auth.uid));
              allow delete: if get(/databases/$(db)/documents/users/$(request.auth.uid)).data.age > 17
                || request.auth.token.admin;
            }
          }
        }
        """#

    private static func quoted(_ string: String) -> String {
        "\"" + string.replacing("\"", with: "\\\"").replacing("\n", with: "\\n") + "\""
    }

    private func test(
        _ cases: String..., source: String = source, path: String = "projects/p:test", rules: RulesetHarness? = nil
    ) throws -> [MapValue] {
        let rules = try rules ?? RulesetHarness()
        let file = #"{"name":"f.rules","content":\#(Self.quoted(source))}"#
        let given = path.hasSuffix("p:test") ? #""source":{"files":[\#(file)]},"# : ""
        let answer = try rules.send(
            "POST", path, #"{\#(given)"testSuite":{"testCases":[\#(cases.joined(separator: ","))]}}"#)
        #expect(answer["issues"] == .array([]))
        return try rules.list(answer["testResults"]).map { result in
            guard case .map(let result) = result else { throw Status.internalError("no object") }
            return result
        }
    }

    private func request(_ method: String, _ uid: String = "alice", _ more: String = "") -> String {
        let path = "/databases/(default)/documents/notes/n"
        return #""request":{"auth":{"uid":"\#(uid)","token":{}},"path":"\#(path)","method":"\#(method)"\#(more)}"#
    }

    private func state(_ result: MapValue) -> Value? { result["state"] }

    private static let success = Value.string("SUCCESS")
    private static let failure = Value.string("FAILURE")

    @Test func expectationsAreMetOrNot() throws {
        let resource = #""resource":{"data":{"owner":"alice"}}"#
        let results = try test(
            #"{"expectation":"ALLOW",\#(request("get")),\#(resource)}"#,
            #"{"expectation":"DENY",\#(request("get")),\#(resource)}"#,
            #"{"expectation":"DENY",\#(request("get", "bob")),\#(resource)}"#,
            #"{"expectation":"ALLOW",\#(request("get", "bob")),\#(resource)}"#)
        #expect(results.map(state) == [Self.success, Self.failure, Self.success, Self.failure])
        #expect(results[0]["debugMessages"] == nil && results[3]["debugMessages"] != nil)
        #expect(results.allSatisfy { $0["functionCalls"] == nil && $0["visitedExpressions"] == nil })
    }

    @Test func functionsHaveOnlyTheResultsOfMocks() throws {
        func mock(_ function: String, _ argument: String, _ result: String) -> String {
            #""functionMocks":[{"function":"\#(function)","args":[\#(argument)],"result":\#(result)}]"#
        }
        let alice = #"{"exactValue":"/databases/(default)/documents/users/alice"}"#
        let any = #"{"anyValue":{}}"#
        let adult = #"{"value":{"data":{"age":18}}}"#
        let results = try test(
            #"{"expectation":"ALLOW",\#(request("create")),\#(mock("exists", alice, #"{"value":true}"#))}"#,
            #"{"expectation":"DENY",\#(request("create")),\#(mock("exists", alice, #"{"value":false}"#))}"#,
            #"{"expectation":"DENY",\#(request("create", "bob")),\#(mock("exists", alice, #"{"value":true}"#))}"#,
            #"{"expectation":"ALLOW",\#(request("delete")),\#(mock("get", alice, adult))}"#,
            #"{"expectation":"ALLOW",\#(request("delete", "bob")),\#(mock("get", any, adult))}"#,
            #"{"expectation":"DENY",\#(request("delete", "bob")),\#(mock("get", alice, adult))}"#,
            #"{"expectation":"DENY",\#(request("delete")),\#(mock("get", alice, #"{"undefined":{}}"#))}"#)
        #expect(results.allSatisfy { state($0) == Self.success }, "\(results)")
        let call = MapValue([
            .init(name: "function", value: .string("exists")),
            .init(name: "args", value: .array([.string("/databases/%28default%29/documents/users/alice")])),
        ])
        #expect(results[0]["functionCalls"] == .array([.map(call)]))
        // A function without a mock is an error, whose position is returned.
        #expect(results[2]["functionCalls"] == nil)
        guard case .map(let position)? = results[2]["errorPosition"],
            case .array(let messages)? = results[2]["debugMessages"]
        else {
            throw Status.internalError("no position: \(results[2])")
        }
        #expect(position["line"] == .integer(6) && position["fileName"] == .string("f.rules"))
        #expect("\(messages)".contains("Function not found error: Name: [exists]."))
        #expect(results[1]["errorPosition"] == nil)
    }

    @Test func pathsAreEncodedOrPlain() throws {
        let source = "service cloud.firestore { match /databases/{db}/documents/c/{d} { allow get: if d == 'a b'; } }"
        func test(_ id: String, _ encoding: String) throws -> Value? {
            state(
                try self.test(
                    #"{"expectation":"ALLOW"\#(encoding),"request":{"path":"c/\#(id)","method":"get"}}"#,
                    source: "rules_version = '2';\n" + source)[0])
        }
        #expect(try test("a%20b", "") == Self.success)
        #expect(try test("a%20b", #","pathEncoding":"URL_ENCODED""#) == Self.success)
        #expect(try test("a%20b", #","pathEncoding":"PLAIN""#) == Self.failure)
        #expect(try test("a b", #","pathEncoding":"PLAIN""#) == Self.success)
    }

    @Test func expressionsAreReportedOnRequest() throws {
        let resource = #""resource":{"data":{"owner":"alice"}}"#
        let results = try test(
            #"{"expectation":"ALLOW","expressionReportLevel":"NONE",\#(request("get")),\#(resource)}"#,
            #"{"expectation":"ALLOW","expressionReportLevel":"VISITED",\#(request("get")),\#(resource)}"#,
            #"{"expectation":"ALLOW","expressionReportLevel":"FULL",\#(request("get")),\#(resource)}"#)
        #expect(results[0]["visitedExpressions"] == nil && results[0]["expressionReports"] == nil)
        guard case .array(let visits)? = results[1]["visitedExpressions"], case .map(let last)? = visits.last,
            case .map(let position)? = last["sourcePosition"]
        else { throw Status.internalError("no visits: \(results[1])") }
        #expect(last["value"] == .boolean(true))
        #expect(position["line"] == .integer(5) && position["column"] == .integer(21))
        guard case .array(let reports)? = results[2]["expressionReports"], case .map(let report)? = reports.first,
            case .array(let values)? = report["values"], case .array(let children)? = report["children"]
        else { throw Status.internalError("no reports: \(results[2])") }
        let count = MapValue([.init(name: "value", value: .boolean(true)), .init(name: "count", value: .integer(1))])
        #expect(reports.count == 1 && values == [.map(count)] && children.count == 2)
    }

    /// A character may have any number of accents, and so may the name of a member.
    @Test(arguments: ["VISITED", "FULL"])
    func reportedValuesAreShort(_ level: String) throws {
        let long = "a" + String(repeating: "\u{301}", count: 50_000)
        let data = #"{"owner":"\#(long)","\#(long)":{"a":"\#(long)"}}"#
        let results = try test(
            #"{"expectation":"DENY","expressionReportLevel":"\#(level)",\#(request("get")),"resource":{"data":\#(data)}}"#
        )
        #expect(results[0].fields.reduce(0) { $0 + "\($1)".utf8.count } < 100_000)
        #expect(results[0]["state"] == Self.success)
    }

    @Test func errorsOfTheSourceAreNoErrorsOfTheRequest() throws {
        let rules = try RulesetHarness()
        func issues(_ source: String) throws -> [Value] {
            let answer = try rules.send(
                "POST", "projects/p:test", #"{"source":{"files":[{"name":"f","content":\#(Self.quoted(source))}]}}"#)
            #expect(answer["testResults"] == .array([]))
            return try rules.list(answer["issues"])
        }
        #expect(try issues(Self.source).isEmpty)
        guard case .map(let issue)? = try issues("service cloud.firestore {\n  match /a { allow read: if ; }\n}").last,
            case .map(let position)? = issue["sourcePosition"]
        else { throw Status.internalError("no issue") }
        #expect(issue["severity"] == .string("ERROR") && position["line"] == .integer(2))
        #expect(position["fileName"] == .string("f"))
        // The tools print line and column of each.
        guard case .map(let warning)? = try issues("service cloud.firestore { match /a/b { allow read; } }").first,
            case .map(let position)? = warning["sourcePosition"]
        else { throw Status.internalError("no warning") }
        #expect(warning["severity"] == .string("WARNING") && position["line"] != nil && position["column"] != nil)
    }

    @Test func aStoredRulesetIsTested() throws {
        let rules = try RulesetHarness()
        let name = try rules.create("request.auth.uid == 'alice'")
        let results = try test(
            #"{"expectation":"ALLOW",\#(request("get"))}"#, #"{"expectation":"ALLOW",\#(request("get", "bob"))}"#,
            path: "\(name):test", rules: rules)
        #expect(results.map(state) == [Self.success, Self.failure])
        #expect(try rules.refusal("POST", "\(name):test", RulesetHarness.body("true"))?.code == .invalidArgument)
        let missing = String(name.dropLast(36)) + "00000000-0000-4000-8000-000000000000"
        #expect(try rules.refusal("POST", "\(missing):test", "{}")?.code == .notFound)
        #expect(try rules.refusal("POST", "projects/p:test", "{}")?.code == .invalidArgument)
    }

    @Test(arguments: [
        "1", "{}", #"{"expectation":"PERHAPS"}"#, #"{"expectation":"ALLOW"}"#,
        #"{"expectation":"ALLOW","request":{"path":"/a/b","method":"read"}}"#,
        #"{"expectation":"ALLOW","request":{"path":"","method":"get"}}"#,
        #"{"expectation":"ALLOW","request":{"path":"/a/b","method":"get"},"pathEncoding":"BASE64"}"#,
        #"{"expectation":"ALLOW","request":{"path":"/a/b","method":"get"},"expressionReportLevel":"ALL"}"#,
        #"{"expectation":"ALLOW","request":{"path":"/a/b","method":"get"},"functionMocks":[{"function":"get"}]}"#,
        #"{"expectation":"ALLOW","request":{"path":"/a/b","method":"get"},"functionMocks":[{"result":{}}]}"#,
        #"{"expectation":"ALLOW","request":{"path":"/a/b","method":"get","time":"now"}}"#,
    ])
    func casesThatAreRefused(test: String) throws {
        do {
            _ = try self.test(test)
            Issue.record("\(test) was judged")
        } catch let status as Status {
            #expect(status.code == .invalidArgument && status.message.contains("Case 1"), "\(status.message)")
        }
    }

    @Test func aTestHasBounds() throws {
        let rules = try RulesetHarness()
        let test = #"{"expectation":"DENY","request":{"path":"/a/b","method":"get"}}"#
        let many = Array(repeating: test, count: Limits.rulesTestCasesMax + 1).joined(separator: ",")
        let source =
            #""source":{"files":[{"name":"f","content":"service cloud.firestore { match /a/b { allow read; } }"}]}"#
        let body = #"{\#(source),"testSuite":{"testCases":[\#(many)]}}"#
        let refusal = try rules.refusal("POST", "projects/p:test", body)
        #expect(refusal?.code == .invalidArgument)
        // Between cases others have their chance, and the end of the client ends the test.
        var count = 0
        let request = try RulesTest(
            body: Array(#"{\#(source),"testSuite":{"testCases":[\#(test),\#(test),\#(test)]}}"#.utf8), stored: nil)
        #expect(throws: Status(.cancelled, "gone")) {
            try request.run { () throws(Status) in
                count += 1
                if count == 2 { throw Status(.cancelled, "gone") }
            }
        }
    }
}
