import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Changes in a scope since a version are found without reading changes elsewhere.
@Suite struct FeedIndexTests {
    private struct Commit {
        var version: Int64
        var keys: [[UInt8]]
    }

    private static func key(_ path: String) -> [UInt8] { DocumentKey.encode(resource(path).path) }

    private static func set(_ commit: Commit) -> ChangeSet {
        ChangeSet(
            version: commit.version,
            changes: commit.keys.map { key in
                Change(
                    key: key, before: nil,
                    after: StoredDocument(createVersion: commit.version, updateVersion: commit.version, fields: []))
            })
    }

    private static let collections = ["c", "d", "c/1/c", "c/2/c", "d/1/c", "c/1/d", "e"] + (0..<40).map { "e/\($0)/c" }

    private static func scope(_ collection: String, isGroup: Bool) -> WatchScope {
        let path = resource(collection).path
        return isGroup
            ? .collectionGroup(Array(path.segments.last!.utf8)) : .collection(DocumentKey.collectionPrefix(path))
    }

    /// Against the list of all commits: an answer is exact, whatever was forgotten.
    @Test func answersAreExact() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        var answers = 0
        var refusals = 0
        for _ in 0..<(20 * TestRun.effort) {
            var commits: [Commit] = []
            var version: Int64 = 1000
            let index = FeedIndex(after: version, unitsMax: random.pick([60, 200, 4000]))
            let begin = version
            for _ in 0..<300 {
                version += Int64(1 + random.below(5))
                let keys = (0..<(1 + random.below(4))).map { _ in
                    Self.key("\(random.pick(Self.collections[..<random.pick([3, 47])]))/\(random.below(5))")
                }
                commits.append(Commit(version: version, keys: keys))
                index.append(Self.set(commits[commits.count - 1]))
                let scope = Self.scope(random.pick(Self.collections), isGroup: random.chance(40))
                let since = random.chance(10) ? begin - 1 : begin + Int64(random.below(Int(version - begin) + 3))
                guard let answer = index.versions(in: scope, after: since) else {
                    refusals += 1
                    // A walk that adds the missing commits to the index.
                    if var walk = index.walk(after: since, snapshotVersion: version), random.chance(50) {
                        for commit in commits where commit.version > since && commit.version <= walk.end {
                            for key in commit.keys { walk.note(key, commit.version) }
                        }
                        index.learn(walk)
                    }
                    continue
                }
                answers += 1
                let expected = commits.filter { commit in
                    commit.version > since && commit.keys.contains { ChangeHub.scopes(of: $0).contains(scope) }
                }
                #expect(answer.versions == expected.map(\.version))
                #expect(answer.through == version)
            }
            index.reset(to: version)
            #expect(index.versions(in: Self.scope("c", isGroup: false), after: version - 1) == nil)
            #expect(index.versions(in: Self.scope("c", isGroup: false), after: version)?.versions == [])
        }
        #expect(answers > 1000 && refusals > 100)
    }

    /// However much is committed, the index stays within its bound, and still knows quiet collections.
    @Test func itIsBounded() throws {
        let index = FeedIndex(after: 0, unitsMax: 1000)
        for version in 1...100_000 {
            index.append(Self.set(Commit(version: Int64(version), keys: [Self.key("c/\(version % 7)")])))
        }
        #expect(index.versions(in: Self.scope("c", isGroup: false), after: 10) == nil)
        #expect(index.versions(in: Self.scope("d", isGroup: false), after: 10)?.versions == [])
        #expect(index.versions(in: Self.scope("c", isGroup: false), after: 99_990)?.versions.count == 10)
    }

    // MARK: Against the feed

    private static func query(_ collection: String, isGroup: Bool = false) throws -> LiveQuery {
        let parts = collection.split(separator: "/").map(String.init)
        let parent = ResourceName(database: testDatabaseName, path: ResourcePath(Array(parts.dropLast())))
        let id = parts[parts.count - 1]
        return LiveQuery(
            try NormalizedQuery(Query(parent: parent, scope: isGroup ? .collectionGroup(id) : .collection(id))))
    }

    private func found(_ live: LiveQuery, _ view: ReadView, since: Int64) throws -> (keys: Set<[UInt8]>, read: Int) {
        let meter = WorkMeter()
        let changes = try #require(
            try view.changes(in: live, since: since, changesMax: .max, meter: meter))
        return (Set(changes.keys), meter.entriesScanned)
    }

    /// The same with a warm index, with a cold one, and without one; states before and after are right.
    @Test func changesOfAScopeAreFound() throws {
        var random = SeededGenerator(seed: TestRun.seed())
        for _ in 0..<(10 * TestRun.effort) {
            var twin = try RandomDatabase(SeededGenerator(seed: random.next()))
            for _ in 0..<25 { try twin.commit(documents: 1 + twin.random.below(4)) }
            let again = try Database(name: testDatabaseName, store: twin.store, clock: twin.clock)
            for _ in 0..<15 { try again.commit([.set("c/\(random.below(6))", map(("n", .integer(1))))]) }
            for round in 0..<30 {
                let past = random.pick(twin.history)
                let live = try Self.query(random.pick(["c", "d", "c/1/c", "c/a/d"]), isGroup: random.chance(40))
                let prefix = DocumentKey.encodeSegments(live.query.query.parent.path)
                let view =
                    try random.chance(30) ? again.view(atVersion: random.pick(twin.history).version) : again.view()
                guard past.version <= view.version, try view.reaches(past.version) else { continue }
                let before = try again.view(atVersion: past.version)
                let meter = WorkMeter()
                let changes = try #require(
                    try view.changes(in: live, since: past.version, changesMax: .max, meter: meter))
                var expected: Set<[UInt8]> = []
                let cursor = try view.snapshot.scan(
                    .feed, Feed.range(after: past.version), reverse: false, values: false)
                while try cursor.next() {
                    let key = Array(cursor.key.dropFirst(8))
                    if Database.decode(Array(cursor.key.prefix(8))) <= view.version, live.concerns(key),
                        key.starts(with: prefix)
                    {
                        expected.insert(key)
                    }
                }
                cursor.close()
                let inScope = Set(changes.keys.filter { live.concerns($0) })
                #expect(inScope == expected, "round \(round)")
                for key in expected {
                    #expect(try changes.before(key) == before.document(key: key))
                    #expect(try changes.after(key) == view.document(key: key))
                }
            }
            again.close()
            twin.database.close()
        }
    }

    /// Resuming a quiet target costs the same after n, 10n and 100n changes elsewhere; the cost of its own changes is
    /// proportional to them.
    @Test func changesElsewhereCostNothing() throws {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: StoppedClock())
        try database.commit([.set("quiet/a", map())])
        let since = try database.commit([.set("quiet/a/below/x", map())]).commitTime.microseconds
        var done = 0
        for count in [20, 200, 2000] {
            while done < count {
                try database.commit([.set("loud/\(done % 50)", map(("n", .integer(Int64(done)))))])
                done += 1
            }
            for isGroup in [false, true] {
                let quiet = try found(try Self.query("quiet", isGroup: isGroup), try database.view(), since: since)
                #expect(quiet.keys.isEmpty && quiet.read == 0)
            }
        }
        try database.commit([.set("quiet/a", map(("n", .integer(1)))), .set("loud/1", map())])
        let own = try found(try Self.query("quiet"), try database.view(), since: since)
        #expect(own.keys == [Self.key("quiet/a")])
        // The record, and the step after it.
        #expect(own.read <= 3)
        database.close()
    }

    /// After a start the first question walks over the keys of the feed; the next ones, for any collection, do not.
    @Test func oneWalkServesAll() throws {
        let store = MemoryStore()
        var since: Int64 = 0
        do {
            let database = try Database(name: testDatabaseName, store: store, clock: StoppedClock())
            since = try database.commit([.set("quiet/a", map())]).commitTime.microseconds
            for number in 0..<1000 {
                try database.commit([.set("loud/\(number % 50)", map(("n", .integer(Int64(number)))))])
            }
        }
        let database = try Database(name: testDatabaseName, store: store, clock: StoppedClock(microseconds: since + 1))
        let first = try found(try Self.query("quiet"), try database.view(), since: since)
        #expect(first.keys.isEmpty && first.read >= 1000 && first.read < 1010)
        for collection in ["quiet", "other", "other/x/quiet"] {
            for isGroup in [false, true] {
                let next = try found(try Self.query(collection, isGroup: isGroup), try database.view(), since: since)
                #expect(next.keys.isEmpty && next.read == 0)
            }
        }
        let loud = try found(try Self.query("loud"), try database.view(), since: since + 500)
        #expect(loud.keys.count == 50 && loud.read < 1010)
        database.close()
    }

    /// Names of collections may have thousands of bytes.
    @Test(arguments: [10, 1000, 6000]) func namesCountByTheirBytes(length: Int) {
        let index = FeedIndex(after: 0)
        let name = String(repeating: "x", count: length)
        var bytesWritten = 0
        var most = 0
        var version: Int64 = 0
        while bytesWritten < 40 << 20 {
            version += 1
            // Alternately a collection of its own and its own collection id.
            let path = ["\(name)\(version)", "d"]
            let key = DocumentKey.encode(ResourcePath(path))
            index.append(ChangeSet(version: version, changes: [Change(key: key, before: nil, after: nil)]))
            bytesWritten += 2 * (key.count + 100)
            most = max(most, index.heldBytes)
        }
        #expect(most > 1 << 20 && most < 24 << 20)
        // Forgotten changes are not reported as unchanged.
        let first = DocumentKey.encode(ResourcePath(["\(name)1", "d"]))
        let location = FeedIndex.Location(of: first)
        let answer = index.versions(in: .collection(location?.prefix ?? []), after: 0)
        #expect(answer == nil || answer?.versions == [1])
    }

    /// The memory of the indexes of all databases is bounded, also of databases without further writes.
    @Test func littleIsKnownWhileAllAreCrowdedAndAnswersAreCorrect() throws {
        let shared = SharedCacheBytes(max: 4 << 20)
        let counts = [4000] + Array(repeating: 500, count: 15)
        let name = String(repeating: "x", count: 200)
        var indexes = counts.map { count in
            let index = FeedIndex(after: 0, shared: shared)
            for version in 1...Int64(count) {
                let key = DocumentKey.encode(ResourcePath(["\(name)\(version)", "d"]))
                index.append(ChangeSet(version: version, changes: [Change(key: key, before: nil, after: nil)]))
            }
            return index
        }
        #expect(shared.isCrowded && indexes[0].heldBytes > 1 << 20)
        for _ in 0..<3 { for index in indexes { index.fit() } }
        #expect(shared.used.load(ordering: .relaxed) == indexes.reduce(0) { $0 + $1.heldBytes })
        #expect(!shared.isCrowded || indexes.allSatisfy { $0.heldBytes <= 8 * 64 << 10 })
        for index in indexes {
            for version in [1, 250, 500] as [Int64] {
                let location = FeedIndex.Location(of: DocumentKey.encode(ResourcePath(["\(name)\(version)", "d"])))
                let answer = index.versions(in: .collection(location?.prefix ?? []), after: version - 1)
                #expect(answer == nil || answer?.versions == [version])
            }
        }
        indexes = []
        #expect(shared.used.load(ordering: .relaxed) == 0)
    }

    // MARK: Queries in the past

    /// A query in the past costs the changes in its own collection, and reads no document of others.
    @Test func aQueryInThePastCostsItsOwnChanges() throws {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: StoppedClock())
        for number in 0..<20 { try database.commit([.set("own/\(number)", map(("n", .integer(Int64(number)))))]) }
        let then = try database.view().version
        try database.commit([.set("own/3", map(("n", .integer(33))))])
        let query = try Self.query("own").query
        var costs: [Int] = []
        var done = 0
        for count in [10, 100, 1000] {
            while done < count {
                let large = map(("body", .string(String(repeating: "x", count: 1000))))
                try database.commit([.set("other/\(done)", large)])
                done += 1
            }
            let meter = WorkMeter()
            let execution = try QueryExecution(query, view: try database.view(atVersion: then), meter: meter)
            var results: [Int64] = []
            while let result = try execution.next() {
                if case .integer(let number)? = try FieldsReader(result.document.fields).value(at: FieldPath("n")) {
                    results.append(number)
                }
            }
            #expect(results.sorted() == (0..<20).map { Int64($0) })
            costs.append(meter.entriesScanned + meter.documentsRead)
        }
        #expect(costs[0] == costs[1] && costs[1] == costs[2], "\(costs)")
        database.close()
    }

    /// More changes than may be held fail with a message, and a resume starts from the beginning.
    @Test func heldChangesAreBounded() throws {
        let database = try Database(name: testDatabaseName, store: MemoryStore(), clock: StoppedClock())
        let since = try database.commit([.set("c/first", map())]).commitTime.microseconds
        for number in 0..<100 { try database.commit([.set("c/\(number)", map())]) }
        let view = try database.view()
        let status = statusOf { () throws(Status) in
            _ = try ScopeChanges(
                in: ScopeChanges.Scope(below: []), after: since, through: view.version, view.snapshot,
                snapshotVersion: view.version, nil, WorkMeter(), bytesMax: 5000)
        }
        #expect(status?.code == .resourceExhausted)
        let live = try Self.query("c")
        #expect(try view.changes(in: live, since: since, changesMax: 99, meter: WorkMeter()) == nil)
        #expect(try view.changes(in: live, since: since, changesMax: 100, meter: WorkMeter())?.keys.count == 100)
        database.close()
    }
}
