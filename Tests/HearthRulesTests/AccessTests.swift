import HearthModel
import Testing

@testable import HearthRules

@Suite struct AccessTests {
    /// A rule that reads this many documents, whose names begin with the document's own name or not.
    private func rules(_ count: Int, shared: Bool) throws -> Ruleset {
        let checks = (0..<count).map { "!exists(/databases/$(db)/documents/x/$(\(shared ? "''" : "d") + 'n\($0)'))" }
        return try compiled(service("match /c/{d} { allow write: if \(checks.joined(separator: " && ")); }"))
    }

    private func judge(_ ruleset: Ruleset, writes: Int) -> (allowed: Int, reads: Int) {
        let access = RulesAccess(total: 20)
        let reader = FixedReader()
        let verdicts = (0..<writes).map {
            ruleset.decide(request(.create, "c/d\($0)", newResource: MapValue()), reader, access)
        }
        #expect(access.count == reader.reads.count)
        #expect(access.paths.count == access.count)
        return (verdicts.filter(\.isAllowed).count, reader.reads.count)
    }

    @Test func tenDocumentsPerOperationAndTwentyPerBatch() throws {
        #expect(judge(try rules(10, shared: true), writes: 5) == (5, 10))
        #expect(judge(try rules(6, shared: false), writes: 3) == (3, 18))
        #expect(judge(try rules(7, shared: false), writes: 3).allowed == 2)
        #expect(judge(try rules(11, shared: false), writes: 2).allowed == 0)
        #expect(judge(try rules(11, shared: true), writes: 2).allowed == 0)
        #expect(judge(try rules(10, shared: false), writes: 2) == (2, 20))
    }

    @Test func aDocumentIsReadOnceForAllAccesses() throws {
        let ruleset = try compiled(
            service(
                """
                match /c/{d} { allow get: if exists(/databases/$(db)/documents/x/y)
                    && get(/databases/$(db)/documents/x/y).data.a == 1 && get(/databases/$(db)/documents/x/y).id == 'y'
                    && existsAfter(/databases/$(db)/documents/x/y); }
                """))
        let reader = FixedReader(["x/y": map(("a", .integer(1)))])
        let access = RulesAccess(total: 10)
        #expect(ruleset.decide(request(.get, "c/d"), reader, access).isAllowed)
        #expect(reader.reads.map(\.path.string) == ["x/y", "x/y"])
        #expect(reader.reads.map(\.isAfter) == [false, true])
        // The states before and after the write are one document.
        #expect(access.count == 1)
    }

    @Test func tooManyDocumentsAreAnErrorWithItsPath() throws {
        let verdict = try rules(11, shared: true).decide(request(.create, "c/d", newResource: MapValue()))
        let segments = ["databases", "(default)", "documents", "x", "n10"].map {
            "  segments {\n    simple: \"\($0)\"\n  }\n"
        }
        #expect(
            verdict.message
                == "\nService call error. Function: [exists], Argument: [path_value {\n\(segments.joined())}\n]. for 'create' @ L3"
        )
    }

    @Test func aReaderThatFailsFailsTheRequest() throws {
        let ruleset = try compiled(
            service("match /c/{d} { allow get: if exists(/databases/$(db)/documents/x/y) || true; allow get; }"))
        let reader = FixedReader()
        reader.failure = .unavailable("the disk is missing")
        let verdict = ruleset.decide(request(.get, "c/d"), reader, RulesAccess(total: 10))
        #expect(!verdict.isAllowed)
        #expect(verdict.failure == .unavailable("the disk is missing"))
    }

    @Test func fieldsAreDecodedOnceAndOnlyWhenRead() throws {
        let ruleset = try compiled(
            service("match /c/{d} { allow get: if d == 'x' || resource.data.a == 1 && resource.data.b == 2; }"))
        var decoded = 0
        let fields = map(("a", .integer(1)), ("b", .integer(2)))
        func request(_ path: String, fails: Bool = false) -> RulesRequest {
            var request = HearthRulesTests.request(.get, path)
            request.resource = RulesDocument(path: request.path) { () throws(Status) in
                decoded += 1
                if fails { throw .internalError("damaged") }
                return fields
            }
            return request
        }
        #expect(ruleset.decide(request("c/x")).isAllowed)
        #expect(decoded == 0)
        #expect(ruleset.decide(request("c/y")).isAllowed)
        #expect(decoded == 1)
        #expect(ruleset.decide(request("c/y", fails: true)).failure == .internalError("damaged"))
    }
}
