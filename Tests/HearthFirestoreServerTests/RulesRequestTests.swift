import HearthModel
import HearthRules
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthFirestoreServer
@testable import HearthHost

/// The requests and answers of the Firebase Rules API.
@Suite struct RulesRequestTests {
    private static func files(_ files: String) -> String { #"{"source":{"files":[\#(files)]}}"# }

    @Test func aRulesetIsReturnedAsItWasSent() throws {
        let rules = try RulesetHarness()
        let content = #"service cloud.firestore {\n  match /a/b { allow read; }\n}\n// é \u0000"#
        let file = #"{"name":"a/firestore.rules","content":"\#(content)","fingerprint":"QUJD"}"#
        let point = "firestore.googleapis.com/projects/0/databases/d"
        let body =
            #"{"source":{"files":[\#(file)],"language":"FIREBASE_RULES"},"attachment_point":"\#(point)"}"#
        let made = try rules.send("POST", "projects/p/rulesets", body)
        let sent = try PlainJSON.object(Array(body.utf8))
        let name = try rules.string(made["name"])
        let read = try rules.send("GET", name)
        #expect(read == made)
        #expect(made["source"] == sent["source"] && made["attachmentPoint"] == sent["attachment_point"])
        let services = Value.array([.string("cloud.firestore")])
        #expect(made["metadata"] == .map(MapValue([.init(name: "services", value: services)])))
        let listed = try rules.list(try rules.send("GET", "projects/p/rulesets")["rulesets"])
        guard case .map(let entry)? = listed.first else { throw Status.internalError("no entry") }
        #expect(entry["name"] == .string(name) && entry["source"] == nil && entry["createTime"] == made["createTime"])
        #expect(try rules.send("DELETE", name) == MapValue())
        #expect(try rules.refusal("GET", name)?.code == .notFound)
        #expect(try rules.refusal("DELETE", name)?.code == .notFound)
    }

    private static let refusedSources: [(body: String, reason: String)] = [
        (files(#"{"name":"f","content":"service cloud.firestore { match /a/b { allow read: if ; } }"}"#), "[1:"),
        (
            files(#"{"name":"f","content":"service firebase.storage { match /a { allow read; } }"}"#),
            "no \"service cloud.firestore\""
        ),
        (files(#"{"name":"f","content":"rules_version = '2';\nservice cloud.firestore {"}"#), "[2:"),
        (files(""), "exactly one file"), (#"{"source":{}}"#, "exactly one file"), ("{}", "no source"),
        (files(#"{"name":"a","content":""},{"name":"b","content":""}"#), "exactly one file"),
        (files(#"{"content":"service cloud.firestore { match /a/b { allow read; } }"}"#), "1 to 512 bytes"),
        (files(#"{"name":1,"content":""}"#), "source.files[0].name"),
        (files(#"{"name":"a","body":""}"#), "Unknown name \"body\" at 'source.files[0]'"),
        (#"{"source":{"files":{}}}"#, "source.files"), (#"{"sauce":{}}"#, "Unknown name \"sauce\""),
        ("[]", "an object"), ("{", "JSON"), (#"{"source":null}"#, "no source"),
        (#"{"attachmentPoint":"a","attachment_point":"b"}"#, "more than once"),
    ]

    @Test(arguments: refusedSources)
    func sourcesThatAreRefused(body: String, reason: String) throws {
        let rules = try RulesetHarness()
        let refusal = try #require(try rules.refusal("POST", "projects/p/rulesets", body))
        #expect(refusal.code == .invalidArgument && refusal.message.contains(reason), "\(refusal.message)")
        #expect(rules.library.rulesets(of: "p").isEmpty)
    }

    @Test func aSourceHasABound() throws {
        let rules = try RulesetHarness()
        func body(_ bytes: Int) -> String {
            let head = "service cloud.firestore { match /a/b { allow read; } }"
            let content = head + String(repeating: " ", count: bytes - head.utf8.count)
            return #"{"source":{"files":[{"name":"f","content":"\#(content)"}]}}"#
        }
        let refusal = try rules.refusal("POST", "projects/p/rulesets", body(RulesLimits.sourceSizeBytesMax))
        #expect(refusal?.code == .invalidArgument)
        _ = try rules.send("POST", "projects/p/rulesets", body(RulesLimits.sourceSizeBytesMax - 1))
    }

    @Test func theLifeOfARelease() throws {
        let rules = try RulesetHarness()
        #expect(try rules.send("GET", "projects/p/releases")["releases"] == .array([]))
        #expect(try rules.send("GET", "projects/p/rulesets")["rulesets"] == .array([]))
        let first = try rules.create("true")
        let second = try rules.create("false")
        let name = "projects/p/releases/cloud.firestore"
        let patch = { (ruleset: String) in #"{"release":{"name":"\#(name)","rulesetName":"\#(ruleset)"}}"# }
        #expect(try rules.refusal("PATCH", name, patch(first))?.code == .notFound)
        let made = try rules.send("POST", "projects/p/releases", #"{"name":"\#(name)","rulesetName":"\#(first)"}"#)
        #expect(made["name"] == .string(name) && made["rulesetName"] == .string(first))
        #expect(made["createTime"] == made["updateTime"])
        let again = try rules.refusal("POST", "projects/p/releases", #"{"name":"\#(name)","rulesetName":"\#(first)"}"#)
        #expect(again?.code == .alreadyExists)
        rules.clock.advance(seconds: 5)
        let changed = try rules.send("PATCH", name, patch(second))
        #expect(changed["rulesetName"] == .string(second) && changed["createTime"] == made["createTime"])
        #expect(changed["updateTime"] != made["updateTime"])
        #expect(try rules.send("GET", name) == changed)
        #expect(try rules.refusal("DELETE", second)?.code == .failedPrecondition)
        #expect(try rules.send("DELETE", first) == MapValue())
        #expect(try rules.refusal("PATCH", name, patch(first))?.code == .notFound)
        #expect(try rules.refusal("GET", "\(name):getExecutable")?.code == .unimplemented)
        #expect(try rules.send("DELETE", name) == MapValue())
        #expect(try rules.refusal("GET", name)?.code == .notFound)
        #expect(try rules.refusal("DELETE", name)?.code == .notFound)
        #expect(try rules.send("DELETE", second) == MapValue())
    }

    @Test(arguments: [
        "cloud.firestore/a/b", "cloud.firestore/", "/a", "..", "a/../b", "a//b", "a b", "%2e%2e", "a/%2E%2E/b", "é",
        "a%00b", "cloud.firestore/(default)",
    ])
    func namesOfReleasesThatAreRefused(name: String) throws {
        let rules = try RulesetHarness()
        let made = try rules.create("true")
        let decoded = name.split(separator: "/", omittingEmptySubsequences: false)
            .map { URLCoding.decode($0) ?? "" }.joined(separator: "/").replacing("\0", with: "\\u0000")
        let body = #"{"name":"projects/p/releases/\#(decoded)","rulesetName":"\#(made)"}"#
        #expect(try rules.refusal("POST", "projects/p/releases", body)?.code == .invalidArgument)
        #expect(try rules.refusal("GET", "projects/p/releases/\(name)")?.code == .invalidArgument)
        #expect(rules.library.releases(of: "p").isEmpty)
    }

    @Test(arguments: [
        "cloud.firestore/d", "cloud.firestore%2Fd", "firebase.storage/b.appspot.com", "a/b/c", "prod_v23",
    ])
    func namesOfReleases(name: String) throws {
        let rules = try RulesetHarness()
        let made = try rules.create("true")
        let decoded = try #require(URLCoding.decode(name))
        let body = #"{"name":"projects/p/releases/\#(decoded)","rulesetName":"\#(made)"}"#
        _ = try rules.send("POST", "projects/p/releases", body)
        let found = try rules.send("GET", "projects/p/releases/\(name)")
        #expect(found["name"] == .string("projects/p/releases/\(decoded)"))
    }

    @Test func requestsThatNameSomethingElse() throws {
        let rules = try RulesetHarness()
        let made = try rules.create("true")
        try rules.release(made)
        let name = "projects/p/releases/cloud.firestore"
        let foreign = made.replacing("projects/p/", with: "projects/q/")
        for body in [
            #"{"name":"projects/q/releases/a","rulesetName":"\#(made)"}"#, #"{"name":"a","rulesetName":"\#(made)"}"#,
            #"{"name":"projects/p/releases/a","rulesetName":"\#(foreign)"}"#, #"{"rulesetName":"\#(made)"}"#,
            #"{"name":"projects/p/releases/a"}"#, #"{"name":"projects/p/releases/","rulesetName":"\#(made)"}"#,
        ] {
            #expect(try rules.refusal("POST", "projects/p/releases", body)?.code == .invalidArgument, "\(body)")
        }
        for body in [
            #"{"release":{"name":"projects/p/releases/other","rulesetName":"\#(made)"}}"#,
            #"{"release":{"rulesetName":"\#(foreign)"}}"#, #"{"release":{"name":"\#(name)"}}"#, "{}",
            #"{"release":{"rulesetName":"\#(made)"},"updateMask":"name"}"#,
        ] {
            #expect(try rules.refusal("PATCH", name, body)?.code == .invalidArgument, "\(body)")
        }
        _ = try rules.send("PATCH", "\(name)?updateMask=ruleset_name", #"{"release":{"rulesetName":"\#(made)"}}"#)
        #expect(try rules.refusal("GET", "projects/q/rulesets/\(made.split(separator: "/")[3])")?.code == .notFound)
        let body = RulesetHarness.body("true")
        for project in ["a%20b", "a%2Fb", "%C3%A9", "", String(repeating: "a", count: 101)] {
            #expect(throws: Status.self, "\(project)") { try rules.send("POST", "projects/\(project)/rulesets", body) }
        }
        _ = try rules.send("POST", "projects/example.com:project/rulesets", body)
    }

    @Test func listsHavePages() throws {
        let rules = try RulesetHarness()
        var made: [String] = []
        for number in 0..<25 {
            made.append(try rules.create("1 == \(number)"))
            rules.clock.advance(seconds: number.isMultiple(of: 3) ? 1 : 0)
        }
        func pages(_ list: String, _ query: String) throws -> [[String]] {
            var pages: [[String]] = []
            var token = ""
            repeat {
                let answer = try rules.send("GET", "projects/p/\(list)?\(query)&pageToken=\(token)")
                pages.append(
                    try rules.list(answer[list]).map { entry in
                        guard case .map(let entry) = entry else { return "" }
                        return try rules.string(entry["name"])
                    })
                token = try answer["nextPageToken"].map { try rules.string($0) } ?? ""
            } while !token.isEmpty
            return pages
        }
        #expect(try pages("rulesets", "pageSize=0").map(\.count) == [10, 10, 5])
        #expect(try pages("rulesets", "pageSize=7").flatMap { $0 } == made.reversed())
        #expect(try pages("rulesets", "pageSize=1000&filter=") == [made.reversed()])
        for name in made.prefix(12) { try rules.release(name, "r\(name.suffix(8))") }
        #expect(try pages("releases", "page_size=5").map(\.count) == [5, 5, 2])
        let first = try rules.send("GET", "projects/p/rulesets?pageSize=2")
        let token = try rules.string(first["nextPageToken"])
        for query in [
            "pageToken=x", "pageSize=-1", "pageSize=a", "what=1", "pageToken=\(token)&filter=name=a*",
            "filter=nome=a", "filter=name", "filter=create_time%20%3E%20date(%22x%22)",
        ] {
            #expect(try rules.refusal("GET", "projects/p/rulesets?\(query)")?.code == .invalidArgument, "\(query)")
        }
        #expect(try rules.refusal("GET", "projects/p/releases?pageToken=\(token)")?.code == .invalidArgument)
    }

    @Test func listsHaveFilters() throws {
        let rules = try RulesetHarness()
        let first = try rules.create("true")
        rules.clock.advance(seconds: 100)
        let middle = RulesRequestTests.time(rules)
        rules.clock.advance(seconds: 100)
        let second = try rules.create("false")
        for (name, ruleset) in [("cloud.firestore", first), ("cloud.firestore/d", second), ("other", second)] {
            try rules.release(ruleset, name)
        }
        func count(_ list: String, _ filter: String) throws -> Int {
            try rules.list(try rules.send("GET", "projects/p/\(list)?filter=\(URLCoding.encode(filter))")[list]).count
        }
        #expect(try count("releases", "name=cloud.firestore*") == 2)
        #expect(try count("releases", "name=cloud.firestore") == 1)
        #expect(try count("releases", "name=\"projects/p/releases/cloud*\"") == 2)
        #expect(try count("releases", "name=cloud* AND ruleset_name=\(second)") == 1)
        #expect(try count("releases", "name=cloud* ruleset_name=\(second.suffix(36))") == 1)
        #expect(try count("rulesets", "create_time > date(\"\(middle)\")") == 1)
        #expect(try count("rulesets", "create_time<=date(\"\(middle)\") AND name=\(first.suffix(36).prefix(8))*") == 1)
        #expect(try count("rulesets", "name=x*") == 0)
    }

    private static func time(_ rules: RulesetHarness) -> String {
        RFC3339.format(seconds: rules.clock.now().seconds, nanoseconds: 0)
    }
}
