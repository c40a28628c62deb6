import Foundation
import HearthCache
import HearthModel
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthDatabase

extension TemporaryFolder {
    /// The state that a process leaves if it is killed now: the system has the data that SQLite has written.
    func copy() throws -> TemporaryFolder {
        let copy = TemporaryFolder()
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            try FileManager.default.copyItem(atPath: "\(path)/\(name)", toPath: "\(copy.path)/\(name)")
        }
        return copy
    }
}

@Suite("What the engine keeps on disk")
struct EngineDiskTests {
    private func get(_ fixture: EngineFixture, _ path: TreePath, _ query: TreeQuery = TreeQuery()) -> [String] {
        fixture.engine.get(query, at: path) { result in
            switch result {
            case .success(let node): fixture.note("got \(treeString(node))")
            case .failure(let failure): fixture.note("get \(failure.status)")
            }
        }
        fixture.clock.advance(milliseconds: 3000)
        return fixture.take()
    }

    @Test func dataIsRestored() throws {
        let folder = TemporaryFolder()
        let json =
            #"{"a":{"b":{".value":1,".priority":2},"c":"ä","d":{"e":2.5,"f":true},".priority":"p"},"w":{"x":1,"y":2}}"#
        let last = TreeQuery.ordered(by: .value, last: 1)
        let first = try EngineFixture(json, folder: folder.path)
        first.observe("a")
        first.observe("w", last)
        first.run()
        first.server.commit([
            TreeChange(path: "a/c", node: .empty), TreeChange(path: "a/d/.priority", node: Node(7)),
            TreeChange(path: "w/z", node: Node(3)),
        ])
        first.run()
        first.engine.close(.closed)
        let second = try EngineFixture(folder: folder.path, connects: false)
        second.observe("a", TreeQuery(), .value)
        second.observe("a/d/e", TreeQuery(), .value)
        second.observe("w", last, .value)
        let whole = #"{"b":{".value":1,".priority":2},"d":{"e":2.5,"f":true,".priority":7},".priority":"p"}"#
        #expect(second.take() == ["value \(whole)", "value 2.5", #"value {"z":3}"#])
        second.observe("w", TreeQuery(), .value)
        #expect(second.take() == [])
    }

    @Test func writesSurviveAKilledProcess() throws {
        let folder = TemporaryFolder()
        let first = try EngineFixture(#"{"a":{"n":1}}"#, folder: folder.path)
        first.observe("a")
        first.run()
        first.connection.disconnect()
        try first.set("5", at: "a/m")
        try first.update(#"{"n":{".sv":{"increment":2}},"x/y":"z","m/.priority":3}"#, at: "a")
        let copy = try folder.copy()
        let second = try EngineFixture(#"{"a":{"n":10}}"#, folder: copy.path, connects: false)
        second.observe("a", TreeQuery(), .value)
        #expect(second.take() == [#"value {"m":{".value":5,".priority":3},"n":3,"x":{"y":"z"}}"#])
        second.connection.connect()
        second.run()
        let expected = #"{"m":{".value":5,".priority":3},"n":12,"x":{"y":"z"}}"#
        #expect(treeString(second.server.tree.child("a")) == expected)
        #expect(second.take().last == "value \(expected)")
        second.engine.close(.closed)
    }

    @Test func acceptedWritesAreStoredWithoutListens() throws {
        let folder = TemporaryFolder()
        let first = try EngineFixture(folder: folder.path)
        try first.set(#"{"b":1}"#, at: "a")
        try first.update(#"{"c":2,"d":3}"#, at: "u")
        first.run()
        first.connection.disconnect()
        #expect(get(first, "a").last == #"got {"b":1}"#)
        #expect(get(first, "u/d") == ["got 3"])
        #expect(get(first, "u") == ["get offline"])
        first.observe("u", TreeQuery(), [.child, .value])
        #expect(first.take() == ["+ c 2 after nothing", "+ d 3 after c"])
    }

    @Test func readsAreStored() throws {
        let folder = TemporaryFolder()
        let fixture = try EngineFixture(#"{"a":{"b":1,"c":2}}"#, folder: folder.path)
        let last = TreeQuery.ordered(by: .key, last: 1)
        fixture.engine.get(last, at: "a") { _ in }
        fixture.run()
        fixture.connection.disconnect()
        #expect(get(fixture, "a", last) == [#"got {"c":2}"#])
        #expect(get(fixture, "a") == ["get offline"])
    }

    @Test func oneOwner() throws {
        let folder = TemporaryFolder()
        let first = try EngineFixture(folder: folder.path)
        #expect(throws: Status.self) { _ = try EngineFixture(folder: folder.path) }
        first.engine.close(.closed)
        try EngineFixture(folder: folder.path).engine.close(.closed)
    }

    @Test func damagedFilesAreMovedAside() throws {
        let folder = TemporaryFolder()
        let first = try EngineFixture(#"{"a":1}"#, folder: folder.path)
        first.observe("a")
        first.run()
        first.engine.close(.closed)
        let file = folder.path + "/realtime.sqlite"
        try Data(repeating: 0x5A, count: 20_000).write(to: URL(fileURLWithPath: file))
        let second = try EngineFixture(folder: folder.path, connects: false)
        #expect(second.clock.reports.count == 1)
        second.observe("a")
        #expect(second.take() == [])
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.contains { $0.hasPrefix("realtime.sqlite.damaged-") })
        second.engine.close(.closed)
    }

    /// Numbers that are counted on from.
    @Test(arguments: [
        "UPDATE queries SET last_use = 9223372036854775806", "UPDATE queries SET id = 9223372036854775807",
        "UPDATE journal SET number = 9223372036854775807", "UPDATE journal SET number = -1",
    ])
    func damagedNumbersAreRefused(_ change: String) throws {
        let folder = TemporaryFolder()
        let first = try EngineFixture(#"{"a":1}"#, folder: folder.path)
        first.observe("a")
        first.run()
        first.engine.close(.closed)
        let database = try CacheDatabase(path: folder.path + "/realtime.sqlite")
        try database.execute(change)
        database.close()
        let status = #expect(throws: Status.self) { try EngineFixture(folder: folder.path, connects: false) }
        #expect(status?.code == .dataLoss)
        let second = try EngineFixture(folder: folder.path, connects: false)
        second.observe("a")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.contains { $0.hasPrefix("realtime.sqlite.damaged-") })
        second.engine.close(.closed)
    }

    @Test func aMissingFileIsReported() throws {
        let folder = TemporaryFolder()
        try EngineFixture(folder: folder.path).engine.close(.closed)
        try FileManager.default.removeItem(atPath: folder.path + "/realtime.sqlite")
        let second = try EngineFixture(folder: folder.path, connects: false)
        #expect(second.clock.reports.count == 1)
        second.engine.close(.closed)
    }

    /// SQLite copies a large value when it compares keys with the key of its row, if both are in one structure.
    @Test func aLargeNeighbourCostsNothing() throws {
        func seconds(beside size: Int) throws -> Double {
            let folder = TemporaryFolder()
            let file = try DiskFile(folder: folder.path, report: { Issue.record("\($0)") })
            defer { file.close(isClean: true) }
            let leaves = DiskLeaves(database: file.database)
            try file.database.begin()
            let large = Node(.string(String(repeating: "x", count: size)))
            try leaves.apply([TreeChange(path: "list/large", node: large)], in: 0)
            let start = threadSeconds()
            for number in 0..<400 {
                let path = TreePath("list/\(number % 2 == 0 ? "a" : "z")\(number)")
                try leaves.apply([TreeChange(path: path, node: Node(1))], in: 0)
            }
            let seconds = threadSeconds() - start
            try file.database.commit()
            return seconds
        }
        // Other load only adds.
        let few = try (0..<3).map { _ in try seconds(beside: 9) }.min() ?? 0
        let many = try (0..<3).map { _ in try seconds(beside: 9_000_000) }.min() ?? 0
        #expect(many < 4 * few, "\(few) s beside a small value, \(many) s beside a large one")
    }

    /// The tables of version 1 had no numbers of rows.
    @Test func anOlderFileIsConverted() throws {
        let folder = TemporaryFolder()
        let old = try CacheDatabase(path: folder.path + "/realtime.sqlite")
        try old.execute(
            """
            CREATE TABLE leaves (
                space INTEGER NOT NULL, path BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (space, path)) WITHOUT ROWID;
            CREATE TABLE queries (
                id INTEGER PRIMARY KEY, path BLOB NOT NULL, query BLOB NOT NULL, is_complete INTEGER NOT NULL,
                last_use INTEGER NOT NULL, UNIQUE (path, query));
            CREATE TABLE writes (
                id INTEGER PRIMARY KEY, path BLOB NOT NULL, is_merge INTEGER NOT NULL, made_at INTEGER NOT NULL,
                data BLOB NOT NULL);
            INSERT INTO leaves VALUES (0, x'61006200', CAST('sold' AS BLOB));
            INSERT INTO queries VALUES (1, CAST('a' AS BLOB), x'', 1, 1);
            INSERT INTO writes VALUES (5, CAST('a/c' AS BLOB), 0, 7, CAST('12' AS BLOB));
            PRAGMA application_id = \(0x4852_5444);
            PRAGMA user_version = 1;
            """)
        old.close()
        let fixture = try EngineFixture(folder: folder.path, connects: false)
        #expect(fixture.clock.reports.isEmpty)
        fixture.observe("a", TreeQuery(), .value)
        #expect(fixture.take() == [#"value {"b":"old","c":12}"#])
        try fixture.set("3", at: "a/d")
        fixture.engine.close(.closed)
        let again = try EngineFixture(folder: folder.path, connects: false)
        again.observe("a", TreeQuery(), .value)
        #expect(again.take() == [#"value {"b":"old","c":12,"d":3}"#])
        again.engine.close(.closed)
    }

    @Test func leastRecentlyUsedIsDeletedFirst() throws {
        let folder = TemporaryFolder()
        let fixture = try EngineFixture(folder: folder.path, cacheSizeBytesMax: 20_000)
        let string = String(repeating: "x", count: 1000)
        for index in 0..<40 { fixture.server.set(Node(.string(string)), at: TreePath("p/\(index)")) }
        fixture.server.set(Node(.string(string)), at: "kept/a")
        fixture.observe("kept")
        for index in 0..<40 {
            let id = fixture.observe(TreePath("p/\(index)"))
            fixture.run()
            fixture.engine.remove(id)
        }
        fixture.engine.disk?.prune()
        fixture.connection.disconnect()
        _ = fixture.take()
        #expect(get(fixture, "p/39").first?.hasPrefix("got") == true)
        #expect(get(fixture, "p/0") == ["get offline"])
        #expect(get(fixture, "kept").first?.hasPrefix("got") == true)
        fixture.engine.close(.closed)
    }

    /// The tree on disk after any changes is the one in memory.
    @Test(arguments: 0..<40)
    func leavesFollowTheTree(_ seed: Int) throws {
        let folder = TemporaryFolder()
        let file = try DiskFile(folder: folder.path, report: { _ in })
        defer { file.close(isClean: true) }
        let leaves = DiskLeaves(database: file.database)
        var chaos = EngineChaos(random: SeededGenerator(seed: UInt64(seed)))
        var tree = Node.empty
        try file.database.begin()
        for step in 0..<60 {
            let changes = chaos.changes().changes.map { $0.settled(nowMilliseconds: 1, old: tree) }
            tree = tree.applying(changes)
            try leaves.apply(changes, in: 3)
            #expect(try leaves.node(at: .root, in: 3) == tree, "seed \(seed), step \(step): \(changes)")
            let path = chaos.path()
            #expect(try leaves.node(at: path, in: 3) == tree.node(at: path), "seed \(seed), step \(step)")
        }
        try file.database.commit()
    }

    /// The engine is killed and restarted at random points: data that was complete is shown again, and in the end all
    /// states agree.
    @Test(arguments: 0..<60)
    func restartsAnywhere(_ seed: Int) throws {
        var chaos = EngineChaos(random: SeededGenerator(seed: UInt64(seed) &+ 5000))
        let server = FakeTreeServer()
        server.set(chaos.node(), at: .root)
        var folder = TemporaryFolder()
        let clock = EngineClock()
        var engine: DatabaseEngine?
        let paths = (0..<4).map { _ in chaos.path(2) }
        let queries = (0..<4).map { _ in chaos.random.below(2) == 0 ? TreeQuery() : chaos.query() }
        for round in 0..<6 {
            let (started, connection) = try start(server, clock, folder)
            engine = started
            let replays = observe(started, paths, queries)
            for _ in 0..<40 {
                step(&chaos, started, connection, server)
                for replay in replays {
                    replay.settle()
                    #expect(replay.takeProblems() == [], "seed \(seed), round \(round)")
                }
            }
            folder = try folder.copy()
            #expect(clock.reports.isEmpty)
        }
        engine?.close(.closed)
        let (last, connection) = try start(server, clock, folder)
        connection.connect()
        let replays = observe(last, paths, queries)
        connection.run()
        #expect(last.sync.writes.isEmpty)
        for replay in replays {
            #expect(
                replay.value == replay.query.result(of: server.tree.node(at: replay.path)),
                "seed \(seed): \(replay.path)")
            let stored = last.disk?.stored(replay.query, at: replay.path)
            #expect(stored == replay.value, "seed \(seed): \(replay.path) on disk")
        }
        last.close(.closed)
    }

    private func start(
        _ server: FakeTreeServer, _ clock: EngineClock, _ folder: TemporaryFolder
    ) throws -> (DatabaseEngine, FakeTreeConnection) {
        let connection = FakeTreeConnection(server)
        let engine = try DatabaseEngine(connection: connection, environment: clock.environment, folder: folder.path)
        connection.delegate = engine
        return (engine, connection)
    }

    private func observe(_ engine: DatabaseEngine, _ paths: [TreePath], _ queries: [TreeQuery]) -> [EventReplay] {
        zip(paths, queries).map { path, query in
            let replay = EventReplay(path, query, mayRepeat: true)
            _ = engine.observe(
                query, at: path, kinds: [.child, .value], onEvent: { replay.receive($0) }, onCancel: { _ in })
            return replay
        }
    }

    /// A connection lost or made, a write of the client or of another one, or a step of the client or the server.
    private func step(
        _ chaos: inout EngineChaos, _ engine: DatabaseEngine, _ connection: FakeTreeConnection,
        _ server: FakeTreeServer
    ) {
        switch chaos.random.below(10) {
        case 0:
            if connection.isConnected { connection.disconnect(arriving: 1) } else { connection.connect() }
        case 1..<3:
            let (path, isMerge, changes) = chaos.changes()
            if isMerge {
                engine.update(changes.map { ($0.path.relative(to: path), $0.node) }, at: path) { _ in }
            } else {
                engine.set(changes[0].node, at: path) { _ in }
            }
        case 3: server.commit(chaos.changes().changes)
        case 4..<7: connection.stepServer()
        default: connection.stepClient()
        }
    }
}
