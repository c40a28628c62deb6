import HearthModel
import HearthTree
import Testing

@testable import HearthDatabase

@Suite("Transactions")
struct EngineTransactionTests {
    @Test func runsOnEmptyDataFirstThenOnTheData() throws {
        let fixture = try EngineFixture(#"{"n":10}"#)
        fixture.transact("n")
        #expect(fixture.take() == ["run null"])
        fixture.run()
        #expect(fixture.take() == ["run 10", "committed 11"])
        #expect(fixture.server.tree.child("n") == Node(11))
        #expect(fixture.connection.listens.isEmpty)
    }

    @Test func queuesAndSendsTogether() throws {
        let fixture = try EngineFixture(#"{"n":10}"#)
        fixture.observe("n")
        fixture.run()
        _ = fixture.take()
        for name in ["1 ", "2 ", "3 "] { fixture.transact("n", name: name) }
        #expect(fixture.take() == ["1 run 10", "value 11", "2 run 11", "value 12", "3 run 12", "value 13"])
        fixture.run()
        #expect(fixture.take() == ["1 committed 11", "2 committed 12", "3 committed 13"])
        #expect(fixture.connection.log.filter { $0.hasPrefix("put") } == ["put /n#", "put /n#"])
    }

    @Test func staleInputsRunAgain() throws {
        let fixture = try EngineFixture(#"{"n":10}"#)
        fixture.observe("n")
        fixture.run()
        _ = fixture.take()
        fixture.transact("n")
        fixture.server.set(Node(50), at: "n")
        fixture.run()
        #expect(fixture.take() == ["run 10", "value 11", "run 50", "value 51", "committed 51"])
    }

    @Test func withoutLocalEventsOnlyTheResultShows() throws {
        let fixture = try EngineFixture(#"{"n":10}"#)
        fixture.observe("n")
        fixture.run()
        _ = fixture.take()
        fixture.transact("n", localEvents: false)
        fixture.server.set(Node(50), at: "n")
        fixture.run()
        #expect(fixture.take() == ["run 10", "value 50", "run 50", "value 51", "committed 51"])
    }

    @Test func abortsWithItsInput() throws {
        let fixture = try EngineFixture(#"{"n":"text"}"#)
        fixture.observe("n")
        fixture.run()
        _ = fixture.take()
        fixture.transact("n")
        fixture.run()
        #expect(fixture.take() == [#"run "text""#, #"aborted "text""#])
    }

    @Test func isRefused() throws {
        let fixture = try EngineFixture(#"{"n":10}"#)
        fixture.server.refuses = { $0 == "n" }
        fixture.observe("n")
        fixture.run()
        _ = fixture.take()
        fixture.transact("n")
        fixture.run()
        #expect(fixture.take() == ["run 10", "value 11", "value 10", "failed permission_denied"])
    }

    @Test func givesUpAfterTwentyFiveTries() throws {
        let fixture = try EngineFixture(#"{"n":0}"#)
        fixture.observe("n", TreeQuery(), [])
        fixture.run()
        fixture.transact("n")
        var value: Int64 = 1000
        while fixture.connection.hasWork {
            value += 1
            fixture.server.set(Node(.integer(value)), at: "n")
            fixture.connection.stepServer()
            fixture.connection.stepClient()
            fixture.connection.stepClient()
        }
        let lines = fixture.take()
        #expect(lines.last == "failed maxretry")
        #expect(lines.filter { $0.hasPrefix("run") }.count == 25)
    }

    @Test func aSetAbortsIt() throws {
        let fixture = try EngineFixture(#"{"a":{"n":10}}"#, connects: false)
        fixture.transact("a/n", name: "1 ")
        fixture.transact("a/n", name: "2 ")
        _ = fixture.take()
        try fixture.update(#"{"m":3}"#, at: "a")
        #expect(fixture.take() == [], "an update of something else")
        try fixture.set("7", at: "a")
        #expect(fixture.take() == ["2 failed set"])
        // The first waits to be sent, with an outdated input.
        fixture.connection.connect()
        fixture.run()
        #expect(fixture.take() == ["1 failed set", "update ok", "set ok"])
    }

    @Test func aSetDoesNotAbortASentTransaction() throws {
        let fixture = try EngineFixture(#"{"n":10}"#)
        fixture.observe("n", TreeQuery(), [])
        fixture.run()
        fixture.transact("n", name: "sent ")
        try fixture.set("100", at: "n")
        fixture.run()
        #expect(fixture.take() == ["sent run 10", "sent committed 11", "set ok"])
        fixture.transact("n", name: "late ")
        fixture.server.set(Node(1), at: "n")
        try fixture.set("5", at: "n")
        fixture.run()
        #expect(fixture.take() == ["late run 100", "late failed set", "set ok"])
    }

    @Test func lostAfterSending() throws {
        let fixture = try EngineFixture(#"{"n":10}"#)
        fixture.observe("n")
        fixture.run()
        _ = fixture.take()
        fixture.transact("n")
        fixture.connection.disconnect()
        #expect(fixture.take() == ["run 10", "value 11", "value 10", "failed disconnect"])
        fixture.transact("n", name: "offline ")
        fixture.connection.connect()
        fixture.run()
        #expect(fixture.take() == ["offline run 10", "value 11", "offline committed 11"])
    }

    @Test func nestedLocationsAreSentOneAfterAnother() throws {
        let fixture = try EngineFixture(#"{"a":{"n":1,"m":1}}"#)
        fixture.observe("a", TreeQuery(), [])
        fixture.run()
        fixture.transact("a/n", name: "n ")
        fixture.engine.runTransaction(at: "a", localEvents: true) {
            $0.setting(TreeKey("k"), to: Node(1))
        } completion: { outcome in
            if case .committed(let node) = outcome { fixture.note("a committed \(treeString(node))") }
        }
        fixture.transact("a/m", add: 5, name: "m ")
        fixture.run()
        #expect(
            fixture.take() == [
                "n run 1", "m run 1", "n committed 2", #"a committed {"k":1,"m":1,"n":2}"#, "m committed 6",
            ])
        #expect(fixture.server.tree.child("a") == (try treeNode(#"{"n":2,"m":6,"k":1}"#)))
        #expect(fixture.connection.log.filter { $0.hasPrefix("put") } == ["put /a/n#", "put /a#"])
    }

    /// An update that ends a transaction at one of its locations must not let another one be sent that it ends, too.
    @Test func anUpdateAbortsAllTogether() throws {
        let fixture = try EngineFixture(#"{"t":{"a":0,"b":0,"c":0}}"#)
        fixture.observe("t", TreeQuery(), [])
        fixture.run()
        fixture.transact("t/c", name: "sent ")
        fixture.engine.runTransaction(at: "t", localEvents: true) {
            $0.setting(TreeKey("k"), to: Node(1))
        } completion: { outcome in
            if case .failed(let failure) = outcome { fixture.note("above failed \(failure.status)") }
        }
        fixture.transact("t/b", name: "below ")
        try fixture.update(#"{"a":5,"b":10}"#, at: "t")
        fixture.run()
        #expect(fixture.take().filter { $0.contains("failed") } == ["above failed set", "below failed set"])
        #expect(fixture.server.tree.child("t") == (try treeNode(#"{"a":5,"b":10,"c":1}"#)))
    }

    @Test func purgeFailsAll() throws {
        let fixture = try EngineFixture(#"{"n":10}"#, connects: false)
        fixture.observe("n")
        fixture.transact("n", name: "1 ")
        fixture.transact("n", name: "2 ")
        try fixture.set("3", at: "m")
        _ = fixture.take()
        fixture.engine.purgeOutstandingWrites()
        #expect(
            fixture.take() == ["value 1", "2 failed write_canceled", "1 failed write_canceled", "set write_canceled"])
        #expect(fixture.connection.outstandingWrites == 0)
    }

    @Test func serverValuesComeFromTheServer() throws {
        let fixture = try EngineFixture(#"{"n":10}"#)
        fixture.server.now = 77
        fixture.observe("n", TreeQuery(), .value)
        fixture.run()
        _ = fixture.take()
        fixture.engine.runTransaction(at: "n", localEvents: true) { _ in
            Node(.deferred(.timestamp))
        } completion: {
            if case .committed(let node) = $0 { fixture.note("committed \(treeString(node))") }
        }
        fixture.run()
        #expect(fixture.take() == ["value 5000000", "value 77", "committed 77"])
    }
}
