import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthModel
import HearthTree
import HearthTreeStorage
import HearthTriggers
import HearthWire
import Synchronization

/// Entry points for fuzzing the records of a damaged data folder. A record that cannot be read is an error of whoever reads it; nothing
/// traps, and nothing takes for ever.
///
/// The first byte says what is done with a store, which is left as it is by what else could be done; the others are changes of a sound
/// store's records, one after the other:
///
///     0 · record (2) · offset (1) · mask (1)                 a byte of its value is another one
///     1 · record (2) · offset (1) · number (8)               so are eight
///     2 · record (2) · count (1)                             its value is cut to so many bytes
///     3 · record (2) · count (1) · bytes                     it has another value
///     4 · record (2) · offset (1) · mask (1)                 a byte of its key is another one
///     5 · keyspace (1) · count (1) · key · count (1) · value  there is another record
///     6 · record (2)                                         it is gone
package enum StoredFuzzing {
    private struct Record {
        var keyspace: Keyspace
        var key: [UInt8]
        var value: [UInt8]
    }

    /// Of every kind that a Firestore database stores.
    package static func fuzzDatabase(_ bytes: [UInt8]) {
        guard let use = bytes.first else { return }
        let store = damaged(documents, bytes.dropFirst())
        // Tools open the store themselves, without a database.
        switch use % 8 {
        case 0: return attempt { () throws(Status) in _ = try Rollback.run(store, to: FixedClock.start + 1002) }
        case 1: return attempt { () throws(Status) in _ = try IndexRepair.run(store) }
        case 2: return attempt { () throws(Status) in _ = try IntegrityCheck.run(store) }
        default: break
        }
        attempt { () throws(Status) in
            let clock = FixedClock()
            let database = try Database(name: name, store: store, clock: clock)
            defer { database.close() }
            switch use % 8 {
            case 3: read(try database.view())
            case 4: read(try database.pastView(at: Timestamp(microseconds: FixedClock.start + 1003)))
            case 5: readHistory(database)
            case 6: write(database)
            default: maintain(database, clock)
            }
        }
    }

    /// Of every kind that a namespace of the Realtime Database stores.
    package static func fuzzNamespace(_ bytes: [UInt8]) {
        guard let use = bytes.first else { return }
        let store = damaged(nodes, bytes.dropFirst())
        attempt { () throws(Status) in
            let database = try TreeDatabase(name: "n", store: store, clock: FixedClock())
            defer { database.close() }
            switch use % 4 {
            case 0:
                let view = try database.view()
                defer { view.close() }
                _ = try TreeIntegrityCheck.run(view, max: 20)
            case 1: try read(database)
            case 2: try query(database)
            default: write(database)
            }
        }
    }

    private static func attempt(_ body: () throws(Status) -> Void) {
        do throws(Status) { try body() } catch { precondition(error.code != .ok) }
    }

    // MARK: Damage

    private static func damaged(_ sound: [Record], _ bytes: ArraySlice<UInt8>) -> MemoryStore {
        var records = sound
        var rest = bytes
        func number(_ count: Int) -> Int {
            let part = rest.prefix(count)
            rest = rest.dropFirst(count)
            return part.reduce(0) { $0 << 8 | Int($1) }
        }
        func string() -> [UInt8] {
            let count = number(1)
            let part = rest.prefix(count)
            rest = rest.dropFirst(count)
            return Array(part)
        }
        while let kind = rest.popFirst() {
            if kind == 5 {
                let keyspace = Keyspace(rawValue: number(1) % Keyspace.allCases.count) ?? .meta
                records.append(Record(keyspace: keyspace, key: string(), value: string()))
                continue
            }
            let index = number(2) % records.count
            switch kind {
            case 0, 4:
                let (offset, mask) = (number(1), UInt8(truncatingIfNeeded: number(1)))
                flip(kind == 0 ? \.value : \.key, of: &records[index], offset, mask)
            case 1:
                let offset = min(number(1), records[index].value.count)
                let new = rest.prefix(8)
                rest = rest.dropFirst(8)
                let end = min(offset + new.count, records[index].value.count)
                records[index].value.replaceSubrange(offset..<end, with: new)
            case 2: records[index].value = Array(records[index].value.prefix(number(1)))
            case 3: records[index].value = string()
            case 6: if records.count > 1 { records.remove(at: index) }
            default: break
            }
        }
        return store(records)
    }

    private static func flip(
        _ part: WritableKeyPath<Record, [UInt8]>, of record: inout Record, _ offset: Int, _ mask: UInt8
    ) {
        let count = record[keyPath: part].count
        if count > 0 { record[keyPath: part][offset % count] ^= mask }
    }

    private static func store(_ records: [Record]) -> MemoryStore {
        let store = MemoryStore()
        attempt { () throws(Status) in
            try store.write { transaction throws(Status) in
                for record in records { try transaction.put(record.keyspace, record.key, record.value) }
            }
        }
        return store
    }

    private static func records(of store: any Store) throws(Status) -> [Record] {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var records: [Record] = []
        for keyspace in Keyspace.allCases {
            let cursor = try snapshot.scan(keyspace, KeyRange(lower: [], upper: nil), reverse: false, values: true)
            defer { cursor.close() }
            while try cursor.next() { records.append(Record(keyspace: keyspace, key: cursor.key, value: cursor.value)) }
        }
        return records
    }

    /// Moves only when it is advanced.
    private final class FixedClock: Clock {
        static let start: Int64 = 1_700_000_000_000_000
        private let passed = Atomic<Int64>(0)

        func advance(seconds: Int64) { passed.add(seconds * 1_000_000, ordering: .relaxed) }
        func now() -> Timestamp { Timestamp(microseconds: Self.start + 1000 + passed.load(ordering: .relaxed)) }
        func monotonicNanoseconds() -> UInt64 {
            1_000_000_000 + UInt64(clamping: passed.load(ordering: .relaxed)) * 1000
        }
    }

    private static func wait<Value: Sendable>(_ begin: (@escaping @Sendable (Value) -> Void) -> Void) -> Value {
        let latch = FuzzLatch()
        let result = Mutex<Value?>(nil)
        let box = ResultBox(result)
        begin { value in
            box.value.withLock { $0 = value }
            latch.open()
        }
        latch.wait()
        guard let value = box.value.withLock({ $0 }) else { preconditionFailure("an answer without a value") }
        return value
    }

    private final class ResultBox<Value: Sendable>: Sendable {
        let value: Mutex<Value?>
        init(_ value: consuming Mutex<Value?>) { self.value = value }
    }

    // MARK: A Firestore database

    private static let name = DatabaseName(project: "p")
    private static let stream = [UInt8](repeating: 7, count: StreamPosition.idBytes)

    private static let documents: [Record] = {
        do throws(Status) { return try makeDocuments() } catch { preconditionFailure("no database: \(error)") }
    }()

    private static let definitions = [
        IndexDefinition(
            id: 0, collectionID: "c", scope: .collection,
            fields: [
                IndexField(path: FieldPath("a"), kind: .ascending), IndexField(path: FieldPath("b"), kind: .contains),
            ], nameDescending: false),
        IndexDefinition(
            id: 0, collectionID: "c", scope: .collectionGroup,
            fields: [
                IndexField(path: FieldPath("a"), kind: .descending), IndexField(path: FieldPath("t"), kind: .ascending),
            ], nameDescending: true),
        IndexDefinition(
            id: 0, collectionID: "c", scope: .collection,
            fields: [IndexField(path: FieldPath("v"), kind: .vector(dimension: 2))], nameDescending: false),
    ]
    private static let definition = IndexDefinition(
        id: 0, collectionID: "c", scope: .collection,
        fields: [
            IndexField(path: FieldPath("m"), kind: .ascending), IndexField(path: FieldPath("a"), kind: .descending),
        ], nameDescending: false)

    private static func makeDocuments() throws(Status) -> [Record] {
        let store = MemoryStore()
        let database = try Database(name: name, store: store, clock: FixedClock())
        let overrides = [
            FieldOverride(
                collectionID: "c", path: FieldPath("t"), indexes: [.init(scope: .collection, kind: .ascending)],
                timeToLive: .init(offsetSeconds: 60)),
            FieldOverride(collectionID: "c", path: FieldPath("hidden"), indexes: []),
        ]
        try wait { database.setCatalog(definitions: definitions, overrides: overrides, completion: $0) }.get()
        for number in 0..<4 {
            let fields = MapValue([
                .init(name: "a", value: .integer(Int64(number))),
                .init(name: "b", value: .array([.string("x"), .null])),
                .init(name: "t", value: .timestamp(Timestamp(microseconds: FixedClock.start))),
                .init(name: "v", value: .vector([1, Double(number)])),
                .init(name: "m", value: .map(MapValue([.init(name: "n", value: .double(0.5))]))),
            ])
            _ = commit([set("c/d\(number)", fields), set("c/d\(number)/c/e", fields)], database, once: "id\(number)")
        }
        let small = MapValue([.init(name: "a", value: .string("é"))])
        _ = commit([set("c/d1", small), Write(document: resource("c/d2"), operation: .delete)], database)
        for number in 1...2 {
            _ = commit(
                [set("c/d3", small)], database,
                at: StreamPosition(stream: stream, owner: [1], number: UInt64(number), fingerprint: UInt64(number)))
        }
        _ = try wait {
            database.changeNote("database", recovery: true, { _ throws(Status) in small }, completion: $0)
        }.get()
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let triggered = Delivery.Event(
            version: try Database.version(of: snapshot), key: DocumentKey.encode(resource("c/d3").path))
        try wait {
            database.perform(
                { transaction throws(Status) in
                    try EventQueue(trigger: 1).put(triggered, [1, 0, 0, 0, 0], in: transaction)
                }, completion: $0)
        }.get()
        defer { database.close() }
        return try records(of: store)
    }

    private static func resource(_ path: String) -> ResourceName {
        ResourceName(database: name, path: ResourcePath(path.split(separator: "/").map(String.init)))
    }

    private static func set(_ path: String, _ fields: MapValue) -> Write {
        Write(document: resource(path), operation: .update(fields: fields, mask: nil))
    }

    private static func commit(
        _ writes: [Write], _ database: Database, at position: StreamPosition? = nil, once: String? = nil
    ) -> Result<CommitOutcome, Status> {
        wait { done in
            database.commit(
                writes, requester: .server, streamPosition: position,
                once: once.flatMap { try? OnceID($0, called: "id") }, completion: done)
        }
    }

    private static func write(_ database: Database) {
        let small = MapValue([.init(name: "a", value: .integer(1))])
        _ = commit([set("c/d1", small), set("c/new", small)], database, once: "id1")
        _ = commit(
            [set("c/d3", small), Write(document: resource("c/d0"), operation: .delete)], database,
            at: StreamPosition(stream: stream, owner: [1], number: 3, fingerprint: 3))
        _ = commit([set("c/d2", small)], database)
        _ = wait { database.resumeIndexes($0) }
        _ = wait { database.setCatalog(definitions: definitions + [definition], overrides: [], completion: $0) }
    }

    private static func maintain(_ database: Database, _ clock: FixedClock) {
        attempt { () throws(Status) in _ = try database.versionRetention() }
        database.tick()
        clock.advance(seconds: 40 * 86_400)
        _ = wait { database.deleteExpired(completion: $0) }
        _ = wait { database.deleteOldOnceAnswers(completion: $0) }
        _ = wait { database.deleteOldLedgerDocuments(of: "c", completion: $0) }
        _ = wait { database.deleteOldStreams(completion: $0) }
        _ = wait { database.collectGarbage(completion: $0) }
        _ = wait { database.setCatalog(definitions: [], overrides: [], completion: $0) }
        attempt { () throws(Status) in _ = try database.versionRetention() }
        _ = wait { database.clear(completion: $0) }
    }

    private static func read(_ view: ReadView) {
        for path in ["c/d0", "c/d1", "c/d2", "c/d3/c/e"] {
            attempt { () throws(Status) in
                _ = try view.document(resource(path).path).map { document throws(Status) in
                    try FieldsCodec.decode(document.fields)
                }
            }
        }
        let root = ResourceName(database: name, path: ResourcePath([]))
        let nearest = Query.FindNearest(
            field: FieldPath("v"), vector: [1, 1], measure: .euclidean, limit: 3, resultField: nil, threshold: nil)
        let both = Filter.and([
            .field(FieldPath("a"), .equal, .integer(1)), .field(FieldPath("b"), .arrayContains, .string("x")),
        ])
        let either = Filter.or([.field(FieldPath("t"), .notEqual, .null), .unary(FieldPath("m"), .isNotNull)])
        let queries = [
            Query(parent: root, scope: .collection("c")), Query(parent: root, scope: .collectionGroup("c")),
            Query(parent: root, scope: .collection("c"), filter: both),
            Query(parent: root, scope: .allDescendants, filter: either),
            Query(
                parent: root, scope: .collectionGroup("c"), filter: .field(FieldPath("a"), .greaterThan, .integer(0)),
                orders: [.init(field: FieldPath("a"), descending: true)]),
            Query(parent: root, scope: .collection("c"), findNearest: nearest),
        ]
        for query in queries {
            attempt { () throws(Status) in
                let execution = try QueryExecution(try NormalizedQuery(query), view: view)
                while try execution.next() != nil {}
            }
        }
        attempt { () throws(Status) in
            let figures = [
                Aggregation(alias: "n", operator: .count(upTo: nil)),
                Aggregation(alias: "s", operator: .sum(FieldPath("a"))),
            ]
            _ = try AggregationExecution(queries[1], figures, view: view).run()
        }
        attempt { () throws(Status) in
            _ = try Listing.collectionIDs(below: ResourcePath([]), after: nil, limit: 10, view: view)
            _ = try Listing.items(of: ResourcePath(["c"]), after: nil, limit: 10, bytesMax: 1 << 20, view: view)
        }
        attempt { () throws(Status) in _ = try Partitions.cuts(try NormalizedQuery(queries[1]), count: 3, view: view) }
    }

    private static func readHistory(_ database: Database) {
        attempt { () throws(Status) in _ = try database.versionRetention() }
        attempt { () throws(Status) in _ = try database.notes("", limit: 100) }
        attempt { () throws(Status) in
            _ = try database.canResume(stream: stream, owner: [1], after: 1, openedAt: FixedClock.start)
        }
        attempt { () throws(Status) in
            let snapshot = try database.store.snapshot()
            defer { snapshot.close() }
            for start in [0, FixedClock.start] {
                attempt { () throws(Status) in
                    var feed = try ChangeFeed(since: Timestamp(microseconds: start + 1), in: snapshot, oldest: 0)
                    _ = try feed.read(in: snapshot, .everything, oldest: 0, .brief()) { _ in true }
                }
            }
            for number in [UInt32(0), 1] { readEvents(EventQueue(trigger: number), in: snapshot) }
        }
    }

    /// What triggers store with the documents.
    private static func readEvents(_ queue: EventQueue, in snapshot: any Snapshot) {
        attempt { () throws(Status) in
            for event in try queue.events(after: nil, countMax: 10, in: snapshot) {
                if let record = try queue.record(of: event, in: snapshot) { _ = try QueuedEvent(record) }
            }
        }
    }

    // MARK: A namespace of the Realtime Database

    private static let nodes: [Record] = {
        do throws(Status) { return try makeNodes() } catch { preconditionFailure("no namespace: \(error)") }
    }()

    private static let indexes = [
        TreeIndexDefinition(pattern: ["list"], index: .value),
        TreeIndexDefinition(pattern: ["topics", "$topic"], index: .child("n")),
    ]

    private static func makeNodes() throws(Status) -> [Record] {
        let store = MemoryStore()
        let database = try TreeDatabase(name: "n", store: store, clock: FixedClock())
        try wait { database.setIndexes(indexes, completion: $0) }.get()
        let json = """
            {"list": {"a": 1, "b": "two", "7": 2.5, "é": true}, "long": "\(String(repeating: "x", count: 3000))",
             "topics": {"r": {"p": {".priority": 3, "n": -1, "deep": {"a": {"b": "c"}}}, "q": {"n": "s"}}}}
            """
        write(database, .root, node(json))
        write(database, "list/c", node("{\".value\": 5, \".priority\": \"p\"}"))
        write(database, "topics/r/q", Node.empty)
        var disconnect = TreeWrite(changes: [], nowMilliseconds: 0)
        disconnect.journal = [JournalChange(session: "s", entry: "e", record: [1, 2, 3])]
        _ = wait { database.submit(disconnect, completion: $0) }
        defer { database.close() }
        return try records(of: store)
    }

    private static func node(_ json: String) -> Node {
        do { return try TreeJSON.node(Array(json.utf8)) } catch { preconditionFailure("no JSON: \(json)") }
    }

    private static func write(_ database: TreeDatabase, _ path: TreePath, _ node: Node) {
        _ = wait {
            database.submit(
                TreeWrite(changes: [TreeChange(path: path, node: node)], nowMilliseconds: 0), completion: $0)
        }
    }

    private static let paths: [TreePath] = [.root, "list", "topics/r", "topics/r/p/deep", "long", "none"]

    private static func read(_ database: TreeDatabase) throws(Status) {
        let view = try database.view()
        defer { view.close() }
        for path in paths {
            attempt { () throws(Status) in _ = try view.node(at: path) }
            attempt { () throws(Status) in _ = try view.hash(at: path) }
            attempt { () throws(Status) in _ = try view.sizeEstimate(at: path, upTo: 1 << 20) }
            attempt { () throws(Status) in _ = try view.children(of: path, after: "a", limit: 3) }
            attempt { () throws(Status) in
                var string: [UInt8] = []
                try view.appendJSON(at: path, to: &string, form: .export)
            }
        }
        attempt { () throws(Status) in _ = try view.journal() }
    }

    private static func query(_ database: TreeDatabase) throws(Status) {
        let view = try database.view()
        defer { view.close() }
        for path in paths {
            for index in [TreeQuery.Index.priority, .key, .value, .child("n")] {
                for isLast in [false, true] {
                    var query = TreeQuery()
                    query.index = index
                    query.start = TreeQuery.Bound(value: index == .key ? nil : .integer(0), key: .min)
                    query.limit = 2
                    query.isLimitedToLast = isLast
                    attempt { () throws(Status) in _ = try view.result(of: query, at: path) }
                    attempt { () throws(Status) in _ = try view.keys(of: query, at: path) }
                }
            }
        }
    }

    private static func write(_ database: TreeDatabase) {
        write(database, "list", node("{\"a\": {\"b\": 2}}"))
        write(database, "topics/r/p/n", node("7"))
        write(database, "long", Node.empty)
        _ = wait { database.setIndexes([indexes[0]], completion: $0) }
        write(database, .root, Node.empty)
    }
}
