import HearthModel
import HearthWire

/// Checks that what a database has stored agrees with itself: documents, index entries, the change feed.
///
/// Reads everything once, in one snapshot, and holds little of it: index entries are computed from each document and
/// looked up; the same number of entries is then no more and no less than what belongs there. Only when the numbers
/// differ are all entries walked over to name those that belong to no document.
public struct IntegrityCheck {
    public struct Report: Sendable {
        public var documents = 0
        public var entries = 0
        public var feedRecords = 0
        public var tombstones = 0
        /// What is wrong, as far as it was noted.
        public var problems: [String] = []
        /// How much is wrong; may be more than was noted.
        public var problemCount = 0
        /// How much of it is a matter of index entries, which `IndexRepair` mends.
        public var entryProblemCount = 0

        public init() {}

        public var isSound: Bool { problemCount == 0 }
    }

    /// Problems that a report names.
    public static let problemsMax = 100

    private let snapshot: any Snapshot
    private var catalog = IndexCatalog()
    private var version: Int64 = 0
    private var earliest: Int64 = 0
    private let check: () throws(Status) -> Void
    private var report = Report()
    private var entriesFound = 0
    private var recordsFound = 0

    /// - Throws: UNAVAILABLE when the store can't be read. What is damaged is reported, not thrown.
    public static func run(
        _ database: Database, check: @escaping () throws(Status) -> Void = {}
    ) throws(Status) -> Report {
        try run(database.store, check: check)
    }

    /// - Parameter check: called for every document; throws to end the check.
    /// - Throws: UNAVAILABLE when the store can't be read. What is damaged is reported, not thrown.
    public static func run(
        _ store: any Store, check: @escaping () throws(Status) -> Void = {}
    ) throws(Status) -> Report {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var checker = IntegrityCheck(snapshot, check)
        do throws(Status) {
            try checker.checkMeta()
            try checker.checkDocuments()
            try checker.checkTombstones()
            try checker.checkNumbers()
        } catch {
            // Behind damage of the engine's own kind nothing more can be read.
            guard error.code == .dataLoss else { throw error }
            checker.note("\(error.message) The rest was not checked.")
        }
        return checker.report
    }

    private init(_ snapshot: any Snapshot, _ check: @escaping () throws(Status) -> Void) {
        self.snapshot = snapshot
        self.check = check
    }

    private mutating func note(_ problem: String) {
        report.problemCount += 1
        if report.problems.count < Self.problemsMax { report.problems.append(problem) }
    }

    private mutating func noteEntry(_ problem: String) {
        report.entryProblemCount += 1
        note(problem)
    }

    private mutating func checkMeta() throws(Status) {
        catalog = try CatalogStore.load(from: snapshot)
        version = try number(Database.versionKey) ?? 0
        earliest = try number(Database.earliestKey) ?? 0
        if earliest > version { note("meta: the feed begins at \(earliest), after the last commit at \(version)") }
    }

    private mutating func number(_ key: [UInt8]) throws(Status) -> Int64? {
        guard let bytes = try snapshot.get(.meta, key) else { return nil }
        if bytes.count != 8 { note("meta: \(String(decoding: key, as: UTF8.self)) has \(bytes.count) bytes, not 8") }
        return Database.decode(bytes)
    }

    // MARK: Documents and their entries

    private mutating func checkDocuments() throws(Status) {
        let cursor = try snapshot.scan(.documents, KeyRange(lower: [], upper: nil), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            try check()
            report.documents += 1
            let key = cursor.key
            guard let path = DocumentKey.decode(key), path.isDocument, DocumentKey.encode(path) == key else {
                note("documents: a key of \(key.count) bytes is no document's")
                continue
            }
            do throws(Status) {
                try check(try StoredDocument(stored: cursor.value), key, path)
            } catch {
                if error.code == .unavailable { throw error }
                note("\(path): \(error.message)")
            }
        }
    }

    private mutating func check(_ document: StoredDocument, _ key: [UInt8], _ path: ResourcePath) throws(Status) {
        let fields = try FieldsCodec.decode(document.fields)
        if FieldsCodec.encode(fields) != document.fields { note("\(path): the fields aren't in canonical form") }
        if document.createVersion > document.updateVersion || document.updateVersion > version {
            note("\(path): created at \(document.createVersion), updated at \(document.updateVersion) of \(version)")
        }
        if try snapshot.get(.meta, Feed.tombstoneKey(key)) != nil { note("\(path): exists and has a tombstone") }
        try checkChain(of: key, from: document.updateVersion, path)

        for entry in IndexEntries.all(of: key, path: path, fields, catalog: catalog) {
            if let value = try snapshot.get(.entries, entry.key) {
                entriesFound += 1
                if value != entry.value { noteEntry("\(path): an index entry has another value") }
            } else if !isBeingBuilt(entry.key) {
                noteEntry("\(path): an index entry is missing")
            }
        }
    }

    private func isBeingBuilt(_ entry: [UInt8]) -> Bool {
        catalog.definitions.contains { definition in
            definition.state == .creating
                && entry.starts(with: IndexKey.idPrefix(definition))
        }
    }

    // MARK: Feed

    /// Follows the states of a document back to the end of what is kept.
    private mutating func checkChain(of key: [UInt8], from latest: Int64, _ path: ResourcePath) throws(Status) {
        var changed = latest
        while changed > 0 {
            guard let value = try snapshot.get(.feed, Feed.key(changed, key)) else {
                if changed > earliest { note("\(path): the state before \(changed) is missing") }
                return
            }
            recordsFound += 1
            let record: Feed.Record
            do throws(Status) {
                record = try Feed.Record(key: Feed.key(changed, key), value: value)
            } catch {
                return note("\(path): the state before \(changed) can't be read: \(error.message)")
            }
            if let before = record.before, before.updateVersion != record.previousVersion {
                note(
                    "\(path): the state before \(changed) is of \(before.updateVersion), not \(record.previousVersion)")
            }
            if record.previousVersion >= changed {
                note("\(path): the change at \(changed) comes after one at \(record.previousVersion)")
                return
            }
            changed = record.previousVersion
        }
    }

    private mutating func checkTombstones() throws(Status) {
        let prefix = Feed.tombstoneKey([])
        let cursor = try snapshot.scan(.meta, KeyRange(prefix: prefix), reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            try check()
            report.tombstones += 1
            let key = Array(cursor.key.dropFirst(prefix.count))
            let deleted = Database.decode(cursor.value)
            guard let path = DocumentKey.decode(key), path.isDocument, cursor.value.count == 8 else {
                note("meta: a tombstone of \(key.count) bytes can't be read")
                continue
            }
            if deleted > version { note("\(path): deleted at \(deleted) of \(version)") }
            try checkChain(of: key, from: deleted, path)
        }
    }

    // MARK: Numbers

    private mutating func checkNumbers() throws(Status) {
        let everything = KeyRange(lower: [], upper: nil)
        report.entries = try snapshot.count(.entries, everything, limit: .max)
        report.feedRecords = try snapshot.count(.feed, everything, limit: .max)
        if report.feedRecords != recordsFound {
            note("feed: \(report.feedRecords - recordsFound) records belong to no document or deletion")
        }
        if report.entries != entriesFound {
            noteEntry("entries: \(report.entries - entriesFound) index entries belong to no document")
            try nameStrayEntries()
        }
    }

    /// Looks for entries that their documents don't account for.
    private mutating func nameStrayEntries() throws(Status) {
        let cursor = try snapshot.scan(.entries, KeyRange(lower: [], upper: nil), reverse: false, values: false)
        defer { cursor.close() }
        while report.problems.count < Self.problemsMax, try cursor.next() {
            let entry = cursor.key
            guard let key = IndexKey.documentKey(of: entry, catalog: catalog), let path = DocumentKey.decode(key),
                path.isDocument
            else {
                report.problems.append("entries: a key of kind \(entry.first ?? 0) can't be read, or is of no index")
                continue
            }
            guard let stored = try snapshot.get(.documents, key) else {
                report.problems.append("\(path): an index entry is left of a document that doesn't exist")
                continue
            }
            let fields: MapValue
            do throws(Status) {
                fields = try FieldsCodec.decode(StoredDocument(stored: stored).fields)
            } catch {
                // Noted when the document was looked at; its entries can't be told from strays.
                continue
            }
            let expected = IndexEntries.all(of: key, path: path, fields, catalog: catalog)
            if !expected.contains(where: { $0.key == entry }) {
                report.problems.append("\(path): an index entry of kind \(entry[0]) is of another content")
            }
        }
    }
}
