@testable import HearthHost
import HearthTestSupport
import HearthModel
import HearthRules
import HearthTree
import Testing

@testable import HearthRealtimeServer

@Suite struct RealtimeParameterTests {
    @Test func noParameters() throws {
        let parameters = try RealtimeParameters(nil)
        #expect(parameters.namespace == nil && parameters.form == .compact && !parameters.hasQuery)
        #expect(parameters.timeoutMilliseconds == 900_000 && parameters.writeSize == nil)
        #expect(try parameters.query() == nil)
    }

    @Test func flagsAreTheStringTrue() throws {
        let parameters = try RealtimeParameters("shallow=true&format=export&sse=true&dryRun=1&ns=a%2Db&x=y")
        #expect(parameters.isShallow && parameters.isExport && parameters.wantsEvents && !parameters.isDryRun)
        #expect(parameters.namespace == "a-b")
        #expect(try !RealtimeParameters("shallow=TRUE").isShallow)
    }

    @Test func aQueryCombinesItsParameters() throws {
        let parameters = try RealtimeParameters("orderBy=%22a%2Fb%22&startAt=3&limitToLast=2&print=pretty")
        let query = try #require(try parameters.query())
        #expect(query.index == .child("a/b"))
        #expect(query.limit == 2 && query.isLimitedToLast)
        #expect(query.start?.value == .integer(3))
        #expect(parameters.form == .pretty)
    }

    @Test func shallowTakesBareKeys() throws {
        let query = try #require(try RealtimeParameters("shallow=true&startAfter=abc&limitToFirst=5").query())
        #expect(query.index == .key && query.limit == 5)
        #expect(query.start?.key == .key("abc") && query.start?.isInclusive == false)
    }

    @Test(arguments: [
        ("3ms", 3), ("2s", 2000), ("15min", 900_000), ("900s", 900_000),
    ])
    func timeouts(_ string: String, _ milliseconds: Int) throws {
        #expect(try RealtimeParameters("timeout=\(string)").timeoutMilliseconds == milliseconds)
    }

    @Test(arguments: [
        "timeout=16min", "timeout=0s", "timeout=3", "timeout=", "timeout=٣s", "callback=", "callback=a(b",
        "writeSizeLimit=Tiny", "auth_variable_override={", "auth_variable_override=1", "a=%zz",
    ])
    func whatCanNotBe(_ string: String) {
        do throws(Status) {
            _ = try RealtimeParameters(string)
            Issue.record("\(string) was taken")
        } catch {
            #expect(error.code == .invalidArgument)
        }
    }

    @Test func theAccessTokenPrecedesTheToken() throws {
        guard case .accessToken("x") = try RealtimeParameters("auth=y&access_token=x").credential else {
            Issue.record("expected the access token")
            return
        }
    }
}

@Suite struct RealtimeAddressTests {
    @Test(arguments: [
        ("/.json", "/"), ("/a/b.json", "/a/b"), ("/a/b/.json", "/a/b"), ("//a//b.json", "/a/b"),
        ("/a%20b/c+d.json", "/a b/c+d"), ("/a.json.json", nil), ("/a/.priority.json", "/a/.priority"),
        ("/a%2Fb.json", nil), ("/.info/x.json", nil), ("/a%0A.json", nil), ("/%ff.json", nil),
    ])
    func locations(_ path: String, _ location: String?) {
        do throws(Status) {
            guard case .data(let found) = try RealtimeResource(path) else {
                Issue.record("\(path) is not a location")
                return
            }
            #expect(found.description == location)
        } catch {
            #expect(location == nil)
            #expect(error.message == "Invalid path: Invalid token in path")
        }
    }

    @Test func administration() throws {
        #expect(try RealtimeResource("/.settings/rules.json") == .rules)
        #expect(try RealtimeResource("/.settings/rules/.json") == .rules)
        #expect(try RealtimeResource("/.settings/functionTriggers.json") == .unknown)
        #expect(try RealtimeResource("/.inspect/databases.json") == .databases)
        #expect(try RealtimeResource("/.settings/other.json") == .unknown)
    }

    @Test func uploads() throws {
        #expect(try RealtimeResource("/.upload") == .upload(.root))
        #expect(try RealtimeResource("/a%20b/c/.upload") == .upload("a b/c"))
        #expect(try RealtimeResource("/.settings/.upload") == .unknown)
        #expect(try RealtimeResource("/.settings/rules/.upload") == .unknown)
        for path in ["/a/.priority/.upload", "/a$/.upload"] {
            #expect(throws: Status.self, "\(path)") { _ = try RealtimeResource(path) }
        }
        #expect(RealtimeResource.isIn("/.upload") && !RealtimeResource.isIn("/a.upload"))
    }

    @Test(arguments: [
        ("shop.firebaseio.com", "shop"), ("SHOP.europe-west1.firebasedatabase.app:443", "shop"),
        ("shop.localhost:9000", "shop"), ("localhost:9000", nil), ("127.0.0.1:80", nil), ("", nil),
        (".firebaseio.com", nil), ("firebaseio.com", nil), ("[::1]:9000", nil),
    ])
    func hosts(_ authority: String, _ name: String?) {
        #expect(RealtimeName.inHost(authority) == name)
    }
}

@Suite struct RealtimeJSONTests {
    @Test(arguments: [
        ("null", "null\n"), ("{}", "{}\n"), ("[]", "[]\n"), (#"{"a":1}"#, "{\n  \"a\" : 1\n}\n"),
        (#"[{"a":[]},"x,]}\""]"#, "[\n  {\n    \"a\" : []\n  },\n  \"x,]}\\\"\"\n]\n"),
    ])
    func pretty(_ compact: String, _ pretty: String) {
        #expect(String(decoding: PrettyJSON.string(Array(compact.utf8)), as: UTF8.self) == pretty)
        // However the pieces are split.
        var pieces = PrettyJSON()
        var output: [UInt8] = []
        for byte in compact.utf8 { pieces.append([byte], to: &output) }
        #expect(String(decoding: output, as: UTF8.self) + "\n" == pretty)
    }

    @Test(arguments: [
        ("{\"a\": 1,}", "{\"a\": 1}"), ("[1, // x, ]\n 2 , /* \" */ ]", "[1, \n 2   ]"),
        ("{\"a\": \"// no\\\" /* either */\"}", "{\"a\": \"// no\\\" /* either */\"}"),
        ("{\"a\": \"two\nlines\t\"}", "{\"a\": \"two\\nlines\\t\"}"), ("{} /* never closed", "{} "),
    ])
    func strict(_ string: String, _ strict: String) {
        #expect(String(decoding: StrictJSON.string(Array(string.utf8)), as: UTF8.self) == strict)
    }
}

@Suite struct RealtimeRulesStoreTests {
    @Test func rulesAreStored() throws {
        let folder = TemporaryFolder()
        let store = RealtimeRulesStore(folder: folder.path)
        #expect(try store.load("a") == nil)
        let string = Array("{\n\"rules\": {}}".utf8)
        try store.save(string, base: "-", "a")
        try store.save([], base: RealtimeRulesStore.digest(string), "Ä/b")
        #expect(try store.load("a") == .init(base: "-", string: string))
        #expect(try store.load("Ä/b") == .init(base: RealtimeRulesStore.digest(string), string: []))
        #expect(RealtimeRulesStore.digest(string) != RealtimeRulesStore.digest([]))
        #expect(RealtimeRulesStore.digest(nil) == "-")
    }

    @Test func otherAddressesAreNotMatched() {
        let folder = TemporaryFolder()
        folder.write("a.rules", "something else")
        #expect(throws: Status.self) { try RealtimeRulesStore(folder: folder.path).load("a") }
    }

    @Test func withoutAFolderNothingIsStored() throws {
        try RealtimeRulesStore(folder: nil).save([1], base: "-", "a")
        #expect(try RealtimeRulesStore(folder: nil).load("a") == nil)
    }
}
