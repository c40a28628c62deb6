import HearthModel
import HearthTree
import Testing

@testable import HearthDatabase

@Suite("Which listens the server gets")
struct EngineListenTests {
    private func log(_ fixture: EngineFixture) -> [String] {
        defer { fixture.connection.log = [] }
        return fixture.connection.log
    }

    @Test func onlyTheHighestLocationHasAListen() throws {
        let fixture = try EngineFixture(#"{"a":{"b":{"c":1}}}"#)
        let query = TreeQuery.ordered(by: .key, last: 1)
        fixture.observe("a/b")
        fixture.observe("a/b", .ordered(by: .value))
        fixture.observe("a/b/c", query)
        fixture.observe("a", query)
        #expect(log(fixture) == ["listen /a/b", "listen /a?"])
        let top = fixture.observe("a")
        #expect(log(fixture) == ["listen /a", "unlisten /a?", "unlisten /a/b"])
        fixture.run()
        _ = fixture.take()
        fixture.engine.remove(top)
        #expect(log(fixture) == ["listen /a?", "listen /a/b", "unlisten /a"])
        let messages = fixture.server.sessions[0].messages.count
        fixture.run()
        #expect(fixture.take() == [], "what was known stays")
        #expect(messages == 0)
        fixture.server.set(Node(2), at: "a/b/c")
        fixture.run()
        #expect(
            fixture.take() == [
                #"! b {"c":2}"#, #"value {"b":{"c":2}}"#, "! c 2", #"value {"c":2}"#, "~ c after nothing", "! c 2",
                #"value {"c":2}"#,
            ])
    }

    @Test func resendsWithTheHashOfWhatItHas() throws {
        let fixture = try EngineFixture(#"{"a":{"b":1}}"#)
        fixture.observe("a")
        fixture.observe("q", .ordered(by: .key, first: 2))
        fixture.run()
        _ = fixture.take()
        fixture.connection.disconnect()
        fixture.server.set(Node(2), at: "a/c")
        fixture.connection.connect()
        fixture.connection.stepServer()
        fixture.connection.stepServer()
        // One listen gets changed data and its answer, the other the answer only.
        #expect(fixture.server.sessions[0].messages.count == 3)
        fixture.run()
        #expect(fixture.take() == ["+ c 2 after b", #"value {"b":1,"c":2}"#])
    }

    @Test func refusedListensCancelAllAtTheLocation() throws {
        let fixture = try EngineFixture(#"{"a":{"b":1}}"#)
        fixture.server.refusesReading = { $0 == "a" }
        fixture.observe("a", name: "1 ")
        fixture.observe("a", .ordered(by: .key, first: 1), name: "2 ")
        fixture.observe("a/b", name: "3 ")
        fixture.run()
        #expect(fixture.take() == ["1 cancelled permission_denied", "2 cancelled permission_denied", "3 value 1"])
        #expect(fixture.connection.listens.map(\.path) == ["a/b"])
    }

    @Test func refusedQueriesCancelOnlyThemselves() throws {
        let fixture = try EngineFixture(#"{"a":{"b":1}}"#)
        fixture.observe("a", .ordered(by: .key, first: 1), name: "1 ")
        fixture.observe("a", .ordered(by: .key, last: 1), name: "2 ")
        fixture.run()
        _ = fixture.take()
        fixture.connection.revoke("a", .ordered(by: .key, first: 1))
        #expect(fixture.take() == ["1 cancelled permission_denied"])
        fixture.server.set(Node(2), at: "a/c")
        fixture.run()
        #expect(fixture.take() == ["2 - b 1", "2 + c 2 after nothing", #"2 value {"c":2}"#])
    }

    @Test func keptSyncedWithoutObservers() throws {
        let fixture = try EngineFixture(#"{"a":{"b":1}}"#)
        fixture.engine.keepSynced(true, TreeQuery(), at: "a")
        fixture.engine.keepSynced(true, TreeQuery(), at: "a")
        let id = fixture.observe("a")
        fixture.run()
        fixture.engine.remove(id)
        fixture.engine.removeAll(TreeQuery(), at: "a")
        #expect(fixture.connection.listens.map(\.path) == ["a"])
        _ = fixture.take()
        fixture.server.set(Node(2), at: "a/b")
        fixture.run()
        fixture.observe("a")
        #expect(fixture.take() == ["+ b 2 after nothing", #"value {"b":2}"#])
        fixture.engine.removeAll(TreeQuery(), at: "a")
        fixture.engine.keepSynced(false, TreeQuery(), at: "a")
        #expect(fixture.connection.listens.isEmpty)
    }

    @Test func aChildOfAWindowIsKnownImmediately() throws {
        let fixture = try EngineFixture(#"{"a":{"b":{"c":1},"d":2}}"#)
        fixture.observe("a", .ordered(by: .key, first: 1))
        fixture.run()
        _ = fixture.take()
        fixture.observe("a/b/c")
        #expect(fixture.take() == ["value 1"])
        fixture.observe("a/d")
        #expect(fixture.take() == [])
        fixture.run()
        #expect(fixture.take() == ["value 2"])
    }

    @Test func knownChildrenPrecedeTheValue() throws {
        let fixture = try EngineFixture(#"{"a":{"b":1,"c":2}}"#)
        fixture.observe("a/b")
        fixture.run()
        _ = fixture.take()
        fixture.observe("a")
        #expect(fixture.take() == ["+ b 1 after nothing"])
        fixture.run()
        #expect(fixture.take() == ["+ c 2 after b", #"value {"b":1,"c":2}"#])
    }

    @Test func rangesReplaceParts() throws {
        let fixture = try EngineFixture(#"{"a":{"b":1,"c":2,"d":{"e":3,"f":4},"g":5}}"#)
        fixture.observe("a", TreeQuery(), .value)
        fixture.run()
        _ = fixture.take()
        let ranges = [
            ListenRange(start: nil, end: "b", node: try treeNode(#"{"b":10}"#)),
            ListenRange(start: "c", end: "d/e", node: try treeNode(#"{"d":{"a":7}}"#)),
            ListenRange(start: "d/f", end: nil, node: try treeNode(#"{"h":8}"#)),
        ]
        fixture.engine.connectionDidReceive(ranges: ranges, at: "a", tag: nil)
        #expect(fixture.take() == [#"value {"b":10,"c":2,"d":{"a":7,"f":4},"h":8}"#])
    }

    @Test(arguments: [TreeQuery(), .ordered(by: .key, first: 90)])
    func ofMuchDataOnlyThePartsThatChangedCome(_ query: TreeQuery) throws {
        let string = String(repeating: "x", count: 100)
        let children = (10..<99).map { "\"k\($0)\":{\"t\":\"\(string)\",\"n\":\($0)}" }.joined(separator: ",")
        let fixture = try EngineFixture("{\"a\":{\(children)}}")
        fixture.observe("a", query, .child)
        fixture.run()
        fixture.connection.disconnect()
        _ = fixture.take()
        fixture.server.commit([
            TreeChange(path: "a/k20/n", node: Node(0)), TreeChange(path: "a/k50", node: .empty),
            TreeChange(path: "a/k505", node: Node(5)), TreeChange(path: "a/z", node: Node(1)),
        ])
        fixture.connection.log = []
        fixture.connection.connect()
        fixture.run()
        #expect(fixture.connection.log.count == 1 && fixture.connection.log[0].hasPrefix("ranges /a"))
        #expect(fixture.take().map { String($0.prefix(6)) } == ["- k50 ", "+ k505", "+ z 1 ", "! k20 "])
        let id = fixture.observe("a", query, .value)
        #expect(fixture.take() == ["value \(treeString(fixture.server.tree.child("a")))"])
        fixture.engine.remove(id)
    }

    @Test func lateDataIsIgnored() throws {
        let fixture = try EngineFixture(#"{"a":1}"#)
        let id = fixture.observe("a")
        fixture.run()
        fixture.engine.remove(id)
        fixture.engine.connectionDidReceive(data: Node(7), at: "a", tag: nil)
        fixture.engine.connectionDidReceive(data: Node(7), at: "a", tag: 99)
        _ = fixture.take()
        fixture.observe("a")
        #expect(fixture.take() == [])
        fixture.run()
        #expect(fixture.take() == ["value 1"])
    }
}
