import HearthHost
import HearthModel
import HearthToolSupport
import Testing

@testable import hearth

@Suite struct TriggersCommandTests {
    private func refusal(_ line: String) -> String? {
        do throws(ToolFailure) {
            _ = try TriggersCommand.Call(line.split(separator: " ").map(String.init))
            return nil
        } catch {
            return error.message
        }
    }

    @Test(arguments: [
        "list", "list --json --host 127.0.0.1:1", "show t --credential f", "test t --document c/d --json", "dead t",
        "test t --ref c/d", "test t --ref c/d --instance ns",
        "dead t --delete --tls", "replay t --dead-letters", "retry t", "retry t --json --tls",
        "replay t --since 2026-11-22T19:17:22Z", "set t -",
        "set t file.json --token x", "delete t", "check hearth.json",
    ])
    func whatIsTaken(line: String) { #expect(refusal(line) == nil) }

    @Test(arguments: [
        ("", "Expected list, show, test, dead, replay, retry, set, delete, check: see `hearth help triggers`."),
        ("lst", "There is no verb \"lst\"; did you mean \"list\"?"), ("list t", "Expected `hearth triggers list`."),
        ("show", "Expected `hearth triggers show NAME`."), ("set t", "Expected `hearth triggers set NAME FILE`."),
        ("test t", "Expected either --document PATH or --ref PATH."),
        ("test t --document c/d --ref c/d", "Expected either --document PATH or --ref PATH."),
        ("test t --document c/d --instance ns", "--instance belongs to --ref."),
        ("replay t", "Expected either --dead-letters or --since TIME."),
        ("retry t --dead-letters", "`hearth triggers retry` has no option --dead-letters."),
        ("replay t --dead-letters --since x", "Expected either --dead-letters or --since TIME."),
        ("list --delete", "`hearth triggers list` has no option --delete."),
        ("show t --document c/d", "`hearth triggers show` has no option --document."),
        ("check f --address 127.0.0.1:1", "`hearth triggers check` has no option --address."),
        ("check f --json", "`hearth triggers check` has no option --json."),
    ])
    func whatIsRefused(line: String, message: String) { #expect(refusal(line) == message) }

    @Test func namesAreEncodedInTheAddress() throws {
        #expect(try TriggersCommand.Call(["show", "a/../b c"]).target == "/hearth/v1/triggers/a%2F..%2Fb%20c")
    }

    // MARK: Reports

    private func value(_ json: String) throws -> ConfigurationValue {
        try ConfigurationValue(parsing: Array(json.utf8), file: "answer")
    }

    @Test func aListHasALineForEachTriggerAndItsError() throws {
        let json = #"""
            {"triggers": [
              {"name": "a", "event": "google.cloud.firestore.document.v1.written", "document": "c/{id}", "url": "http://e/",
               "source": "file", "state": "failing", "pending": 12, "delivered": 0, "failedAttempts": 3, "deadLetters": 0,
               "lastError": {"time": "T", "status": 500, "message": "no\u001b[31m"}},
              {"name": "longer", "eventType": "google.cloud.firestore.document.v1.created", "document": {"value": "d/{x}"},
               "source": "emulator", "state": "active", "pending": 0, "delivered": 1, "failedAttempts": 0, "deadLetters": 2},
              {"name": "first", "eventTrigger": {"eventType": "providers/cloud.firestore/eventTypes/document.write",
               "resource": "r"}, "state": "active", "pending": 0, "delivered": 0, "failedAttempts": 0, "deadLetters": 0}]}
            """#
        let lines = try TriggersReport.list(value(json)).split(separator: "\n").map(String.init)
        #expect(
            lines == [
                "NAME    STATE    PENDING  DELIVERED  FAILED  DEAD  EVENT           PATTERN  URL",
                "a       failing  12       0          3       0     written         c/{id}   http://e/",
                #"    T 500: no\u{1b}[31m"#,
                "longer  active   0        1          0       2     created         d/{x}",
                "first   active   0        0          0       0     document.write  r",
            ])
        #expect(try TriggersReport.list(value(#"{"triggers": []}"#)) == "There are no triggers.")
    }

    @Test func oneTriggerIsShownWithAllItsMembers() throws {
        let json = #"""
            {"name": "a", "retry": {"maxAge": "7d"}, "pending": 3, "lastError": {"status": "cut", "message": "m"}}
            """#
        #expect(
            try TriggersReport.one(value(json)) == """
                name       a
                retry      {"maxAge":"7d"}
                pending    3
                lastError  cut: m
                """)
    }

    private static let letters = #"""
        {"deadLetters": [
          {"id": "1", "time": "T1", "document": "d/1", "attempts": 1, "lastError": {"status": 500, "message": "m"}},
          {"id": "2", "time": "T2", "document": "d\n/2", "attempts": 12, "lastError": {"status": "timeout", "message": "n"}}]}
        """#

    @Test func aPageOfDeadLettersEndsWithTheIDOfTheLast() throws {
        let (lines, last) = try TriggersReport.deadLetters(value(Self.letters), asJSON: false)
        #expect(last == "2")
        #expect(lines == "1  T1  d/1  1 attempt  500: m\n2  T2  d\\n/2  12 attempts  timeout: n\n")
        #expect(try TriggersReport.deadLetters(value(#"{"deadLetters": []}"#), asJSON: false) == ("", nil))
    }

    @Test func asJSONThereIsALineForEachDeadLetter() throws {
        let lines = try TriggersReport.deadLetters(value(Self.letters), asJSON: true).lines
        #expect(
            lines.split(separator: "\n").first ?? ""
                == #"{"id":"1","time":"T1","document":"d/1","attempts":1,"lastError":{"status":500,"message":"m"}}"#)
        #expect(lines.split(separator: "\n").count == 2)
    }

    private static let request = #"""
        "request": {"method": "POST", "url": "http://e/", "headers": [{"name": "ce-id", "value": "7"}]
        """#

    @Test func aTestIsPrintedAsHTTPHasIt() throws {
        let json = #"""
            {"event": {"id": "7", "data": {"value": {"n": 1}}}, \#(Self.request), "bodyBase64": "CgA=", "bodyBytes": 2},
             "answer": {"acknowledged": true, "milliseconds": 3, "status": 200, "headers": [{"name": "a", "value": "b"}],
             "body": "x\u0007y", "bodyBytes": 90}}
            """#
        #expect(
            try TriggersReport.test(value(json)) == #"""
                POST http://e/
                ce-id: 7

                (2 bytes of protobuf; as JSON:)
                {"value":{"n":1}}

                HTTP 200 after 3 ms
                a: b

                x\u{7}y
                (the first 3 of 90 bytes)
                """#)
        #expect(try TriggersReport.failure(value(json)) == nil)
    }

    @Test func aTestWithoutAnAnswerSaysWhy() throws {
        let json = #"""
            {"event": {}, \#(Self.request), "body": "{}", "bodyBytes": 2},
             "answer": {"acknowledged": false, "milliseconds": 9, "status": "timeout", "message": "late"}}
            """#
        #expect(
            try TriggersReport.test(value(json)) == "POST http://e/\nce-id: 7\n\n{}\n\ntimeout after 9 ms\nlate")
        #expect(try TriggersReport.failure(value(json)) == "late")
    }

    @Test func noCharacterIsObeyedByATerminal() {
        #expect(Printable.string("a\u{1b}[0m\r\n\u{202e}\u{9b}ä\t") == "a\\u{1b}[0m\\u{d}\n\\u{202e}\\u{9b}ä\t")
        #expect(Printable.line("a\nb\tc") == "a\\nb\\tc")
    }
}
