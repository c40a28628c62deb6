import HearthModel
import HearthTree
import Testing

@testable import HearthDatabase

@Suite("Events of observers")
struct EngineEventTests {
    struct Case: CustomStringConvertible, Sendable {
        let name: String
        let start: String
        var query = TreeQuery()
        let write: @Sendable (EngineFixture) throws -> Void
        let events: [String]
        var description: String { name }
    }

    static let cases: [Case] = [
        Case(
            name: "a child comes", start: #"{"a":1,"c":3}"#, write: { try $0.set("2", at: "x/b") },
            events: ["+ b 2 after a", #"value {"a":1,"b":2,"c":3}"#]),
        Case(
            name: "a child goes", start: #"{"a":1,"c":3}"#, write: { try $0.set("null", at: "x/a") },
            events: ["- a 1", #"value {"c":3}"#]),
        Case(
            name: "a child changes", start: #"{"a":1,"c":3}"#, write: { try $0.set("4", at: "x/a") },
            events: ["! a 4", #"value {"a":4,"c":3}"#]),
        Case(
            name: "a change deep inside", start: #"{"a":{"b":{"c":1}},"c":3}"#,
            write: { try $0.set("2", at: "x/a/b/c") },
            events: [#"! a {"b":{"c":2}}"#, #"value {"a":{"b":{"c":2}},"c":3}"#]),
        Case(
            name: "nothing changes", start: #"{"a":1}"#, write: { try $0.set("1", at: "x/a") }, events: []),
        Case(
            name: "an update: removed, added, changed", start: #"{"a":1,"b":2,"c":3}"#,
            write: { try $0.update(#"{"a":null,"d":4,"b":5}"#, at: "x") },
            events: ["- a 1", "+ d 4 after c", "! b 5", #"value {"b":5,"c":3,"d":4}"#]),
        Case(
            name: "priorities move", start: #"{"a":{".value":1,".priority":1},"b":{".value":2,".priority":2}}"#,
            write: { try $0.set("3", at: "x/a/.priority") },
            events: [
                "~ a after b", #"! a {".value":1,".priority":3}"#,
                #"value {"a":{".value":1,".priority":3},"b":{".value":2,".priority":2}}"#,
            ]),
        Case(
            name: "an indexed value moves even to its own location", start: #"{"a":{"n":1},"b":{"n":9}}"#,
            query: .ordered(by: .child("n")), write: { try $0.set("2", at: "x/a/n") },
            events: ["~ a after nothing", #"! a {"n":2}"#, #"value {"a":{"n":2},"b":{"n":9}}"#]),
        Case(
            name: "by key nothing moves", start: #"{"a":{".value":1,".priority":1}}"#, query: .ordered(by: .key),
            write: { try $0.set("3", at: "x/a/.priority") },
            events: [#"! a {".value":1,".priority":3}"#, #"value {"a":{".value":1,".priority":3}}"#]),
        Case(
            name: "each kind in the order of the query", start: #"{"a":4,"b":3,"c":2,"d":1}"#,
            query: .ordered(by: .value), write: { try $0.update(#"{"a":null,"c":null,"e":0,"f":9,"b":8}"#, at: "x") },
            events: [
                "- c 2", "- a 4", "+ e 0 after nothing", "+ f 9 after b", "~ b after d", "! b 8",
                #"value {"b":8,"d":1,"e":0,"f":9}"#,
            ]),
        Case(
            name: "a leaf replaces children", start: #"{"a":1}"#, write: { try $0.set("5", at: "x") },
            events: ["- a 1", "value 5"]),
        Case(
            name: "children replace a leaf", start: "5", write: { try $0.set("1", at: "x/a") },
            events: ["+ a 1 after nothing", #"value {"a":1}"#]),
        Case(
            name: "a leaf changes", start: "5", write: { try $0.set("6", at: "x") }, events: ["value 6"]),
        Case(
            name: "all goes", start: #"{"a":1}"#, write: { try $0.set("null", at: "") },
            events: ["- a 1", "value null"]),
        Case(
            name: "a priority of the location itself", start: #"{"a":1}"#,
            write: { try $0.set("7", at: "x/.priority") },
            events: [#"value {"a":1,".priority":7}"#]),
        Case(
            name: "the last child takes the priority with it", start: #"{"a":1,".priority":7}"#,
            write: {
                try $0.set("null", at: "x/a")
                try $0.set("1", at: "x/a")
            },
            events: ["- a 1", "value null", "+ a 1 after nothing", #"value {"a":1}"#]),
        Case(
            name: "keys that are numbers come first", start: #"{"b":1,"10":2,"9":3}"#,
            write: { try $0.set("0", at: "x/2") },
            events: ["+ 2 0 after nothing", #"value {"2":0,"9":3,"10":2,"b":1}"#]),
        Case(
            name: "a limit lets the other end go", start: #"{"a":1,"b":2,"c":3}"#,
            query: .ordered(by: .value, last: 2), write: { try $0.set("4", at: "x/d") },
            events: ["- b 2", "+ d 4 after c", #"value {"c":3,"d":4}"#]),
        Case(
            name: "out of a bound, into a bound", start: #"{"a":1,"b":2,"z":9}"#, query: .keys(from: "a", to: "c"),
            write: { try $0.update(#"{"b":null,"c":3,"y":5}"#, at: "x") },
            events: ["- b 2", "+ c 3 after a", #"value {"a":1,"c":3}"#]),
        Case(
            name: "increments on existing numbers", start: #"{"a":40}"#,
            write: { try $0.set(#"{".sv":{"increment":2}}"#, at: "x/a") }, events: ["! a 42", #"value {"a":42}"#]),
        Case(
            name: "times are the clock's", start: "null", write: { try $0.set(#"{".sv":"timestamp"}"#, at: "x") },
            events: ["value 5000000"]),
    ]

    /// A write raises its events immediately, and none when the server confirms it; another client's write raises the
    /// same.
    @Test(arguments: cases)
    func writes(_ test: Case) throws {
        let own = try EngineFixture("{\"x\":\(test.start)}")
        own.server.now = 5_000_000
        own.observe("x", test.query)
        own.run()
        _ = own.take()
        try test.write(own)
        #expect(own.take().filter { !$0.hasSuffix("ok") } == test.events, "at once")
        own.run()
        #expect(own.take().filter { !$0.hasSuffix("ok") } == [], "confirmed")
    }

    @Test(arguments: cases)
    func writesOfOthers(_ test: Case) throws {
        let own = try EngineFixture("{\"x\":\(test.start)}")
        own.server.now = 5_000_000
        own.observe("x", test.query)
        own.run()
        let other = FakeTreeConnection(own.server)
        let otherEngine = try DatabaseEngine(connection: other, environment: own.clock.environment)
        other.delegate = otherEngine
        _ = own.take()
        let writer = try EngineFixture("{\"x\":\(test.start)}")
        writer.server.now = 5_000_000
        try test.write(writer)
        // Each write of the other client in the server's form.
        while writer.connection.hasWork {
            let version = writer.server.version
            writer.connection.stepServer()
            writer.connection.stepClient()
            if writer.server.version != version { own.server.commit(writer.server.lastChanges) }
        }
        own.run()
        #expect(own.take() == test.events)
    }

    @Test func firstEvents() throws {
        let fixture = try EngineFixture(#"{"x":{"b":2,"a":1}}"#)
        fixture.observe("x")
        #expect(fixture.take() == [])
        fixture.run()
        #expect(fixture.take() == ["+ a 1 after nothing", "+ b 2 after a", #"value {"a":1,"b":2}"#])
        fixture.observe("x", .ordered(by: .value, last: 1), name: "second ")
        #expect(fixture.take() == ["second + b 2 after nothing", #"second value {"b":2}"#])
        fixture.observe("none")
        fixture.run()
        #expect(fixture.take() == ["value null"])
    }

    @Test func lowerLocationsBeforeHigherOnes() throws {
        let fixture = try EngineFixture(#"{"x":{"a":{"b":1}}}"#)
        for path: TreePath in ["", "x", "x/a", "x/a/b"] { fixture.observe(path, TreeQuery(), .value, name: "\(path) ") }
        fixture.run()
        _ = fixture.take()
        try fixture.set("2", at: "x/a/b")
        #expect(
            fixture.take() == [
                "/x/a/b value 2", #"/x/a value {"b":2}"#, #"/x value {"a":{"b":2}}"#, #"/ value {"x":{"a":{"b":2}}}"#,
            ])
    }

    @Test func refusedWritesAreRevertedBeforeTheirCompletion() throws {
        let fixture = try EngineFixture(#"{"x":{"a":1}}"#)
        fixture.server.refuses = { _ in true }
        fixture.observe("x")
        fixture.run()
        _ = fixture.take()
        try fixture.update(#"{"a":2,"b":3}"#, at: "x")
        #expect(fixture.take() == ["+ b 3 after a", "! a 2", #"value {"a":2,"b":3}"#])
        fixture.run()
        #expect(fixture.take() == ["- b 3", "! a 1", #"value {"a":1}"#, "update permission_denied"])
    }

    @Test func writesAboveUnknownDataAreVisibleImmediately() throws {
        let fixture = try EngineFixture(#"{"x":{"a":1}}"#, connects: false)
        fixture.observe("x")
        try fixture.set("1", at: "x/b")
        #expect(fixture.take() == ["+ b 1 after nothing"], "only a child is known")
        try fixture.set(#"{"c":1}"#, at: "x")
        #expect(fixture.take() == ["- b 1", "+ c 1 after nothing", #"value {"c":1}"#])
        fixture.connection.connect()
        fixture.run()
        #expect(fixture.take() == ["set ok", "set ok"])
    }

    @Test func aRefusedWriteMakesDataUnknownAgain() throws {
        let fixture = try EngineFixture(#"{"x":{"a":1}}"#, connects: false)
        try fixture.set("1", at: "x/b")
        fixture.observe("x")
        #expect(fixture.take() == ["+ b 1 after nothing"])
        fixture.engine.purgeOutstandingWrites()
        #expect(fixture.take() == ["- b 1", "set write_canceled"])
        fixture.connection.connect()
        fixture.run()
        #expect(fixture.take() == ["+ a 1 after nothing", #"value {"a":1}"#])
    }

    @Test func singleObserversReceiveOneEvent() throws {
        let fixture = try EngineFixture(#"{"x":{"a":1,"b":2}}"#)
        fixture.observe("x", TreeQuery(), .value, name: "v ", isSingle: true)
        fixture.observe("x", TreeQuery(), .childAdded, name: "c ", isSingle: true)
        fixture.run()
        #expect(fixture.take() == ["c + a 1 after nothing", #"v value {"a":1,"b":2}"#])
        #expect(fixture.connection.listens.isEmpty)
        try fixture.set("3", at: "x/c")
        #expect(fixture.take() == [])
    }

    @Test func callbacksMayCallTheEngine() throws {
        let fixture = try EngineFixture(#"{"x":1}"#)
        var id: ObserverID?
        id = fixture.engine.observe(
            TreeQuery(), at: "x", kinds: .value,
            onEvent: { event in
                fixture.note(eventLine(event))
                if let id { fixture.engine.remove(id) }
                fixture.engine.set(Node(2), at: "x") { _ in fixture.note("done") }
            }, onCancel: { _ in })
        fixture.run()
        fixture.run()
        #expect(fixture.take() == ["value 1", "done"])
    }

    @Test func incrementsFollowTheServer() throws {
        let fixture = try EngineFixture(#"{"x":10}"#)
        fixture.observe("x")
        fixture.run()
        fixture.connection.disconnect()
        try fixture.set(#"{".sv":{"increment":1}}"#, at: "x")
        _ = fixture.take()
        fixture.server.set(Node(20), at: "x")
        fixture.connection.connect()
        fixture.run()
        #expect(fixture.take() == ["value 21", "set ok"])
    }

    @Test func infoIsLocal() throws {
        let fixture = try EngineFixture(connects: false)
        fixture.observe(".info/connected")
        #expect(fixture.take() == ["value false"])
        fixture.connection.connect()
        fixture.connection.disconnect()
        #expect(fixture.take() == ["value true", "value false"])
        fixture.engine.connectionDidLearn(serverTimeOffsetMilliseconds: -25)
        fixture.observe(".info")
        #expect(fixture.take().last == #"value {"connected":false,"serverTimeOffset":-25}"#)
        #expect(fixture.engine.serverNowMilliseconds == fixture.clock.now - 25)
        #expect(fixture.connection.log.isEmpty)
    }
}
