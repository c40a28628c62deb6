import HearthModel
import HearthWire
import Testing

@testable import HearthStorage

/// What is damaged on purpose is found, and what can be repaired is.
@Suite struct IntegrityCheckTests {
    let store = MemoryStore()
    let database: Database

    init() throws {
        database = try Database(name: testDatabaseName, store: store, clock: ManualClock())
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

    @Test func whatIsSoundIsSound() throws {
        let report = try IntegrityCheck.run(store)
        #expect(report.problems == [])
        #expect(report.documents == 39)
        #expect(report.feedRecords == 42)
        #expect(report.tombstones == 1)
        #expect(try IndexRepair.run(store) == IndexRepair.Report())
    }

    /// One index entry after the other is taken away, given another value, and put where it doesn't belong.
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

            // The last byte is a terminator or of a name or value: nobody's entry.
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
            #expect(try !IntegrityCheck.run(store).isSound)
            // Its entries are left alone while nobody can tell which belong to it.
            #expect(try IndexRepair.run(store) == IndexRepair.Report())
        }
        try delete(.documents, document)
        var report = try IntegrityCheck.run(store)
        #expect(report.problems.contains { $0.contains("an index entry is left of a document that doesn't exist") })
        #expect(report.problems.contains { $0.hasPrefix("feed: ") })
        try put(.documents, document, stored)

        try put(.meta, Feed.tombstoneKey(document), Database.encode(1))
        #expect(try !IntegrityCheck.run(store).isSound)
        try put(.meta, Feed.tombstoneKey(document), [])
        #expect(try !IntegrityCheck.run(store).isSound)
        try delete(.meta, Feed.tombstoneKey(document))
        try delete(.meta, Feed.tombstoneKey(key("c/d3")))
        report = try IntegrityCheck.run(store)
        #expect(report.problems == ["feed: 2 records belong to no document or deletion"])
    }

    @Test func theVersionCounts() throws {
        let version = try value(.meta, Database.versionKey)
        try put(.meta, Database.versionKey, Database.encode(Database.decode(version) - 1))
        #expect(try IntegrityCheck.run(store).problems.count == 1)
        try put(.meta, Database.versionKey, [1])
        #expect(try !IntegrityCheck.run(store).isSound)
        try put(.meta, Database.versionKey, version)
        try put(.meta, CatalogStore.key, [0xFF])
        #expect(try IntegrityCheck.run(store).problems.count == 1)
        #expect(throws: Status.self) { try IndexRepair.run(store) }
    }

    /// Nothing that stands in a damaged store ends the process.
    @Test func noiseIsReported() throws {
        var random = SeededRandom(3)
        for keyspace in [Keyspace.entries, .documents, .feed] {
            for number in 0..<400 {
                let count = Int.random(in: 0...40, using: &random)
                var noise = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
                // Half of them begin like a key, and go astray later.
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
