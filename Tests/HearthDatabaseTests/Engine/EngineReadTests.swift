import HearthModel
import HearthTree
import Testing

@testable import HearthDatabase

@Suite("Reading once, and what happens on disconnect")
struct EngineReadTests {
    private func get(_ fixture: EngineFixture, _ path: TreePath, _ query: TreeQuery = TreeQuery()) {
        fixture.engine.get(query, at: path) { result in
            switch result {
            case .success(let node): fixture.note("got \(treeString(node))")
            case .failure(let failure): fixture.note("get \(failure.status)")
            }
        }
    }

    @Test func observersAnswer() throws {
        let fixture = try EngineFixture(#"{"a":{"b":1,"c":2}}"#)
        fixture.observe("a", TreeQuery(), [])
        fixture.run()
        try fixture.set("5", at: "a/b")
        get(fixture, "a/b")
        get(fixture, "a", .ordered(by: .key, last: 1))
        #expect(fixture.take() == ["got 5", #"got {"c":2}"#])
        #expect(!fixture.connection.log.contains { $0.hasPrefix("get") })
    }

    @Test func theServerAnswersAndObserversAreNotified() throws {
        let fixture = try EngineFixture(#"{"a":{"b":1,"c":2}}"#)
        get(fixture, "a")
        get(fixture, "a", .ordered(by: .key, last: 1))
        fixture.run()
        #expect(fixture.take() == [#"got {"b":1,"c":2}"#, #"got {"c":2}"#])
        fixture.observe("a/b")
        get(fixture, "a")
        fixture.run()
        #expect(fixture.take() == ["value 1", #"got {"b":1,"c":2}"#])
    }

    @Test func aFilteredAnswerLeavesItsSiblings() throws {
        let fixture = try EngineFixture(#"{"a":{"b":1,"c":2}}"#)
        fixture.observe("a/b")
        fixture.run()
        get(fixture, "a", .ordered(by: .key, last: 1))
        fixture.run()
        #expect(fixture.take() == ["value 1", #"got {"c":2}"#])
    }

    @Test func offline() throws {
        let fixture = try EngineFixture(#"{"a":1}"#, connects: false)
        get(fixture, "a")
        fixture.clock.advance(milliseconds: 2999)
        #expect(fixture.take() == [])
        fixture.clock.advance(milliseconds: 1)
        #expect(fixture.take() == ["get offline"])
        get(fixture, "a")
        fixture.connection.connect()
        fixture.clock.advance(milliseconds: 5000)
        fixture.run()
        #expect(fixture.take() == ["got 1"])
        fixture.server.refusesReading = { _ in true }
        get(fixture, "a")
        fixture.run()
        #expect(fixture.take() == ["get permission_denied"])
    }

    @Test func disconnectWritesAreVisibleImmediately() throws {
        let fixture = try EngineFixture(#"{"a":{"n":3},"w":{"x":1,"y":2}}"#)
        fixture.observe("a", TreeQuery(), .value)
        fixture.observe("w", .ordered(by: .key, first: 1), .value, name: "w ")
        fixture.run()
        _ = fixture.take()
        let engine = fixture.engine
        engine.onDisconnectSet(try treeNode(#"{"bar":1,"baz":2}"#), at: "a/foo") { _ in fixture.note("kept") }
        engine.onDisconnectUpdate([("foo/bam", Node(3)), ("n", Node(.deferred(.increment(1))))], at: "a") { _ in }
        engine.onDisconnectSet(.empty, at: "a/foo/baz") { _ in }
        engine.onDisconnectSet(Node(9), at: "w/x") { _ in }
        engine.onDisconnectSet(Node(9), at: "a/gone") { _ in }
        engine.onDisconnectCancel(at: "a/gone") { _ in }
        fixture.run()
        #expect(fixture.take() == ["kept"])
        fixture.connection.disconnect()
        #expect(fixture.take().sorted() == [#"value {"foo":{"bam":3,"bar":1},"n":4}"#, #"w value {"x":9}"#])
        fixture.connection.connect()
        fixture.run()
        #expect(fixture.take() == [])
        fixture.connection.disconnect()
        #expect(fixture.take() == [], "only once")
    }
}
