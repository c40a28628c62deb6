import HearthModel
import HearthTestSupport
import HearthWire
import Testing

@testable import HearthEngine
@testable import HearthDocuments

/// Deliberate damage is found, and repaired where that is possible.
@Suite struct IntegrityCheckTests {
    let store = MemoryStore()
    let database: Database

    init() throws {
        database = try Database(name: testDatabaseName, store: store, clock: StoppedClock())
        try database.setCatalog(
            [
                IndexDefinition(
                    id: 0, collectionID: "c", scope: .collectionGroup,
                    fields: [
                        IndexField(path: FieldPath("a"), kind: .ascending),
                        IndexField(path: FieldPath("b"), kind: .contains),
                    ],
                    nameDescending: false)
            ], [FieldOverride(collectionID: "c", path: FieldPath("hidden"), indexes: [])])
        for number in 0..<20 {
            let fields = map(
                ("a", .double(Double(number))), ("b", .array([.integer(1), .string("x")])), ("hidden", .integer(1)))
            try database.commit([.set("c/d\(number)", fields), .set("c/d\(number)/c/e", fields)])
        }
        try database.commit([.delete("c/d3")])
        try database.commit([.set("c/d4", map(("a", .null)))])
    }

    private func keys(_ keyspace: Keyspace) throws -> [[UInt8]] {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let cursor = try snapshot.scan(keyspace, KeyRange(lower: [], upper: nil), reverse: false, values: false)
        var keys: [[UInt8]] = []
        while try cursor.next() { keys.append(cursor.key) }
        return keys
    }

    private func contents() throws -> [[[UInt8]: [UInt8]]] {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try Keyspace.allCases.map { keyspace in
            var all: [[UInt8]: [UInt8]] = [:]
            for key in try keys(keyspace) { all[key] = try snapshot.get(keyspace, key) }
            return all
        }
    }

    private func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws {
        try store.write { transaction throws(Status) in try transaction.put(keyspace, key, value) }
    }

    private func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws {
        try store.write { transaction throws(Status) in try transaction.delete(keyspace, key) }
    }

    private func value(_ keyspace: Keyspace, _ key: [UInt8]) throws -> [UInt8] {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        return try #require(try snapshot.get(keyspace, key))
    }

    private func key(_ path: String) -> [UInt8] { DocumentKey.encode(resource(path).path) }

    @Test func aSoundStoreHasNoProblems() throws {
        let report = try IntegrityCheck.run(store)
        #expect(report.problems == [])
        #expect(report.documents == 39)
        #expect(report.feedRecords == 42)
        #expect(report.tombstones == 1)
        #expect(try IndexRepair.run(store) == IndexRepair.Report())
    }

    /// One index entry after the other is removed, given another value, and moved to a wrong key.
    @Test func everyIndexEntryCounts() throws {
        let before = try contents()
        let all = try keys(.entries)
        for entry in stride(from: 0, to: all.count, by: 11).map({ all[$0] }) {
            let original = try value(.entries, entry)
            try delete(.entries, entry)
            var report = try IntegrityCheck.run(store)
            #expect(report.problemCount == 1 && report.entryProblemCount == 1)
            #expect(report.problems.first?.contains("is missing") == true)
            #expect(try IndexRepair.run(store).added == 1)

            try put(.entries, entry, original + [7])
            report = try IntegrityCheck.run(store)
            #expect(report.problemCount == 1 && report.entryProblemCount == 1)
            #expect(try IndexRepair.run(store).corrected == 1)

            // The last byte is a terminator or part of a name or value: an entry of no document.
            try put(.entries, entry + [1], original)
            report = try IntegrityCheck.run(store)
            #expect(report.entryProblemCount == 1)
            #expect(try IndexRepair.run(store).removed == 1)
            #expect(try IntegrityCheck.run(store).isSound)
        }
        #expect(try contents() == before)
    }

    @Test func everyFeedRecordCounts() throws {
        for record in try keys(.feed) {
            let original = try value(.feed, record)
            try delete(.feed, record)
            #expect(try !IntegrityCheck.run(store).isSound)
            try put(.feed, record, Array(original.prefix(5)))
            #expect(try !IntegrityCheck.run(store).isSound)
            // One of another document.
            try put(.feed, record, original)
            try put(.feed, record + [1], original)
            #expect(try !IntegrityCheck.run(store).isSound)
            try delete(.feed, record + [1])
        }
        #expect(try IntegrityCheck.run(store).isSound)
    }

    @Test func documentsAndTombstonesCount() throws {
        let document = key("c/d5")
        let stored = try value(.documents, document)
        for damaged in [[], Array(stored.prefix(10)), stored + [0xFF], Array(stored.dropLast(3))] {
            try put(.documents, document, damaged)
            let problems = try IntegrityCheck.run(store).problems
            #expect(problems.contains { $0.hasPrefix("c/d5: ") && !$0.contains("index entry") }, "\(problems)")
            // Its entries are left alone while it is unknown which belong to it.
            #expect(try IndexRepair.run(store) == IndexRepair.Report())
        }
        try delete(.documents, document)
        var report = try IntegrityCheck.run(store)
        #expect(report.problems.contains { $0.contains("an index entry is left of a document that doesn't exist") })
        #expect(report.problems.contains { $0.hasPrefix("feed: ") })
        try put(.documents, document, stored)

        try put(.meta, Feed.tombstoneKey(document), Database.encode(1))
        #expect(try IntegrityCheck.run(store).problems.contains("c/d5: exists and has a tombstone"))
        try put(.meta, Feed.tombstoneKey(document), [])
        #expect(try !IntegrityCheck.run(store).isSound)
        try delete(.meta, Feed.tombstoneKey(document))
        try delete(.meta, Feed.tombstoneKey(key("c/d3")))
        report = try IntegrityCheck.run(store)
        #expect(report.problems == ["feed: 2 records belong to no document or deletion"])
    }

    private func value(of record: Feed.Record) -> [UInt8] {
        var value: [UInt8] = []
        Feed.appendValue(previousVersion: record.previousVersion, record.before, to: &value)
        return value
    }

    /// The state before each change is checked like a document.
    @Test func formerStatesCount() throws {
        let document = key("c/d5")
        let created = try StoredDocument(stored: value(.documents, document)).updateVersion
        try database.commit([.set("c/d5", map(("a", .integer(1))))])
        let changed = try StoredDocument(stored: value(.documents, document)).updateVersion
        let sound = try Feed.Record(
            key: Feed.key(changed, document), value: value(.feed, Feed.key(changed, document)))
        let before = try #require(sound.before)
        #expect(try IntegrityCheck.run(store).isSound)

        let faults: [(String, (inout Feed.Record) -> Void)] = [
            ("can't be read: ", { $0.before?.fields.append(0xFF) }),
            ("can't be read: ", { $0.before?.fields.removeLast(2) }),
            ("aren't in canonical form", { $0.before?.fields.append(contentsOf: before.fields) }),
            ("of \(created - 1), not \(created)", { $0.before?.updateVersion -= 1 }),
            ("comes after one at \(changed)", { $0.previousVersion = changed }),
            ("which contradicts its history", { $0.before?.createVersion -= 1 }),
            ("which contradicts its history", { $0.before = nil }),
        ]
        for (found, damage) in faults {
            var record = sound
            damage(&record)
            try put(.feed, Feed.key(changed, document), value(of: record))
            let report = try IntegrityCheck.run(store)
            #expect(report.problems.contains { $0.contains(found) }, "\(found): \(report.problems)")
            #expect(report.entryProblemCount == 0)
        }
        try put(.feed, Feed.key(changed, document), value(of: sound))

        // A deletion has a document before it.
        let deletion = Feed.key(Database.decode(try value(.meta, Feed.tombstoneKey(key("c/d3")))), key("c/d3"))
        let deleted = try value(.feed, deletion)
        try put(.feed, deletion, Array(deleted.prefix(8)))
        #expect(try IntegrityCheck.run(store).problems.contains { $0.contains("when it didn't exist") })
        try put(.feed, deletion, deleted)
        #expect(try IntegrityCheck.run(store).isSound)
    }

    /// A document's times are those of its history, and not later than the last commit.
    @Test func timesCount() throws {
        let document = key("c/d5")
        let sound = try StoredDocument(stored: value(.documents, document))
        let faults: [(String, (inout StoredDocument) -> Void)] = [
            ("updated at", { $0.updateVersion = .max }),
            ("the state before", { $0.updateVersion += 1 }),
            ("belong to no document", { $0.updateVersion = 0 }),
            ("created at", { $0.createVersion = $0.updateVersion + 1 }),
            ("which contradicts its history", { $0.createVersion -= 1 }),
        ]
        for (found, damage) in faults {
            var stored = sound
            damage(&stored)
            try put(.documents, document, stored.stored)
            let report = try IntegrityCheck.run(store)
            #expect(report.problems.contains { $0.contains(found) }, "\(found): \(report.problems)")
        }
    }

    @Test func everyTombstoneCounts() throws {
        let tombstone = Feed.tombstoneKey(key("c/d3"))
        let sound = try value(.meta, tombstone)
        let deleted = Database.decode(sound)
        for (found, damaged) in [
            ("can't be read", Array(sound.dropLast())), ("can't be read", sound + [0]),
            ("deleted at \(Int64.max)", Database.encode(.max)), ("which is not a commit's time", Database.encode(0)),
            ("which is not a commit's time", Database.encode(-1)),
            ("the state before \(deleted - 1) is missing", Database.encode(deleted - 1)),
        ] {
            try put(.meta, tombstone, damaged)
            let report = try IntegrityCheck.run(store)
            #expect(report.problems.contains { $0.contains(found) }, "\(found): \(report.problems)")
        }
        try put(.meta, tombstone, sound)
        // A key of no document, and a document that never existed.
        for key in [key("c/d3") + [7], key("c/d99")] {
            try put(.meta, Feed.tombstoneKey(key), sound)
            #expect(try IntegrityCheck.run(store).problemCount == 1)
            try delete(.meta, Feed.tombstoneKey(key))
        }
        #expect(try IntegrityCheck.run(store).isSound)
    }

    @Test func theVersionsCount() throws {
        let version = try value(.meta, Database.versionKey)
        try put(.meta, Database.versionKey, Database.encode(Database.decode(version) - 1))
        #expect(try IntegrityCheck.run(store).problems.count == 1)
        try put(.meta, Database.versionKey, [1])
        #expect(try !IntegrityCheck.run(store).isSound)
        try delete(.meta, Database.versionKey)
        #expect(try !IntegrityCheck.run(store).isSound)
        try put(.meta, Database.versionKey, version)

        // The start of the feed: too early is harmless while nothing was forgotten, too late would hide missing
        // records.
        try put(.meta, Database.earliestKey, Database.encode(1))
        #expect(try IntegrityCheck.run(store).isSound)
        try put(.meta, Database.earliestKey, version)
        #expect(try IntegrityCheck.run(store).problems.contains { $0.contains("but there is a record of") })
        try put(.meta, Database.earliestKey, Database.encode(.max))
        #expect(try IntegrityCheck.run(store).problems.contains { $0.contains("after the last commit") })
        try put(.meta, Database.earliestKey, [])
        #expect(try IntegrityCheck.run(store).problems.contains { $0.contains("has 0 bytes") })
    }

    @Test func theCatalogCounts() throws {
        let sound = try value(.meta, CatalogStore.key)
        func problems(_ catalog: [UInt8]) throws -> [String] {
            try put(.meta, CatalogStore.key, catalog)
            return try IntegrityCheck.run(store).problems
        }
        #expect(try problems([0xFF]).count == 1)
        #expect(throws: Status.self) { try IndexRepair.run(store) }
        var fields = try FieldsCodec.decode(sound)
        guard case .array(let definitions)? = fields["definitions"] else {
            throw Status.internalError("no definitions")
        }
        fields.set("definitions", .array(definitions + definitions))
        #expect(try problems(FieldsCodec.encode(fields)).contains("meta: two indexes have the id 1"))
        fields.set("definitions", .array(definitions))
        fields.set("next", .integer(1))
        #expect(try problems(FieldsCodec.encode(fields)) == ["meta: the id 1 of the next index isn't above 1"])
        fields.set("definitions", .array([]))
        // Entries of a forgotten index belong to no document.
        #expect(try problems(FieldsCodec.encode(fields)).contains { $0.contains("belong to no document") })
        #expect(try problems(sound) == [])
    }

    @Test func notesCount() throws {
        try put(.meta, Database.noteKey("n"), FieldsCodec.encode(map(("a", .integer(1)))))
        #expect(try IntegrityCheck.run(store).isSound)
        try put(.meta, Database.noteKey("n"), [0xFF])
        #expect(try IntegrityCheck.run(store).problems.contains { $0.hasPrefix("meta: note/n can't be read") })
        try delete(.meta, Database.noteKey("n"))
        try put(.meta, Array("versio".utf8), [])
        #expect(try IntegrityCheck.run(store).problems == ["meta: a key of 6 bytes is unknown"])
    }

    /// Records that the retention has deleted are not reported as missing.
    @Test func aTruncatedHistoryIsSound() throws {
        let clock = StoppedClock()
        let store = MemoryStore()
        let database = try Database(name: testDatabaseName, store: store, clock: clock)
        for number in 0..<10 {
            try database.commit([.set("c/d\(number)", map()), .set("c/e", map(("a", .integer(Int64(number)))))])
        }
        try database.commit([.delete("c/d1")])
        clock.advance(seconds: Double(Limits.retentionSeconds) + 120)
        try database.commit([.set("c/d1", map()), .delete("c/d2"), .set("c/e", map())])
        var isMore = true
        while isMore {
            let forgotten = Promise<Result<Bool, Status>>()
            database.collectGarbage(recordsMax: 5) { forgotten.give($0) }
            isMore = try forgotten.wait().get()
            #expect(try IntegrityCheck.run(store).problems == [])
        }
        #expect(try IntegrityCheck.run(store).feedRecords == 3)
    }

    /// No content of a damaged store ends the process.
    @Test func noiseIsReported() throws {
        var random = SeededGenerator(seed: 3)
        for keyspace in [Keyspace.entries, .documents, .feed] {
            for number in 0..<400 {
                let count = Int.random(in: 0...40, using: &random)
                var noise = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
                // Half of them begin like a key, and become invalid later.
                if number.isMultiple(of: 2), let known = try keys(keyspace).randomElement(using: &random) {
                    noise = known.prefix(Int.random(in: 0...known.count, using: &random)) + noise
                }
                if try store.snapshot().get(keyspace, noise) != nil { continue }
                try put(keyspace, noise, Array(noise.reversed()))
                if number.isMultiple(of: 50) { #expect(try !IntegrityCheck.run(store).isSound) }
            }
            let report = try IntegrityCheck.run(store)
            #expect(report.problems.count <= IntegrityCheck.problemsMax)
            _ = try IndexRepair.run(store)
        }
    }

    @Test func aRepairTakesManySteps() throws {
        let documents = IndexRepair.stepDocumentsMax * 2
        for start in stride(from: 0, to: documents, by: 250) {
            try database.commit((start..<(start + 250)).map { .set("many/d\($0)", map(("a", .integer(Int64($0))))) })
        }
        let before = try contents()
        try store.write { transaction throws(Status) in
            try transaction.delete(.entries, KeyRange(lower: [], upper: nil), limit: .max)
            for number in 0..<(IndexRepair.stepEntriesMax * 2) {
                try transaction.put(.entries, [9] + Database.encode(Int64(number)), [])
            }
        }
        let repair = try IndexRepair.run(store)
        #expect(repair.added == before[Keyspace.entries.rawValue].count)
        #expect(repair.removed == IndexRepair.stepEntriesMax * 2)
        #expect(try contents() == before)
    }
}
