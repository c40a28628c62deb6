import HearthEngine
import HearthModel
import HearthWire

/// Checks that the stored data of a database is consistent: documents, index entries, the change feed.
///
/// Reads everything once, in one snapshot, and holds little of it. It computes the index entries of each document and
/// looks them up. When the total number of entries is the same, there are no others. Only when the numbers differ, it
/// walks over all entries to name those that belong to no document.
package struct IntegrityCheck {
    package struct Report: Sendable {
        package var documents = 0
        package var entries = 0
        package var feedRecords = 0
        package var tombstones = 0
        /// The problems found, as far as they were noted.
        package var problems: [String] = []
        /// The number of problems; may be more than were noted.
        package var problemCount = 0
        /// The number of problems with index entries, which `IndexRepair` repairs.
        package var entryProblemCount = 0

        package init() {}

        package var isSound: Bool { problemCount == 0 }
    }

    /// Problems that a report lists.
    package static let problemsMax = 100

    private let snapshot: any Snapshot
    private var catalog = IndexCatalog()
    private var version: Int64 = 0
    private var earliest: Int64 = 0
    private var ledger: OnceLedger.State?
    private let check: () throws(Status) -> Void
    private var report = Report()
    private var entriesFound = 0
    private var recordsFound = 0

    /// - Throws: UNAVAILABLE when the store can't be read. What is damaged is reported, not thrown.
    package static func run(
        _ database: Database, check: @escaping () throws(Status) -> Void = {}
    ) throws(Status) -> Report {
        try run(database.store, check: check)
    }

    /// - Parameter check: called for every document; throws to end the check.
    /// - Throws: UNAVAILABLE when the store can't be read. What is damaged is reported, not thrown.
    package static func run(
        _ store: any Store, check: @escaping () throws(Status) -> Void = {}
    ) throws(Status) -> Report {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        var checker = IntegrityCheck(snapshot, check)
        do throws(Status) {
            try checker.checkCatalog()
            try checker.checkVersions()
            try checker.checkDocuments()
            try checker.checkMeta()
            try checker.checkNumbers()
        } catch {
            // After damage of the storage engine itself nothing more can be read.
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

    private mutating func checkCatalog() throws(Status) {
        catalog = try CatalogStore.load(from: snapshot)
        let next = catalog.nextID
        var ids: Set<UInt32> = []
        for definition in catalog.definitions {
            if !ids.insert(definition.id).inserted { note("meta: two indexes have the id \(definition.id)") }
            if definition.id >= next { note("meta: the id \(next) of the next index isn't above \(definition.id)") }
        }
    }

    private mutating func checkVersions() throws(Status) {
        version = try number(Database.versionKey) ?? 0
        earliest = try number(Database.earliestKey) ?? 0
        ledger = try OnceLedger.state(in: snapshot)
        if earliest > version { note("meta: the feed begins at \(earliest), after the last commit at \(version)") }
        let cursor = try snapshot.scan(.feed, KeyRange(lower: [], upper: nil), reverse: false, values: false)
        defer { cursor.close() }
        guard try cursor.next(), cursor.key.count >= 8 else { return }
        let first = Database.decode(Array(cursor.key.prefix(8)))
        if first < earliest { note("meta: the feed begins at \(earliest), but there is a record of \(first)") }
    }

    private mutating func number(_ key: [UInt8]) throws(Status) -> Int64? {
        guard let bytes = try snapshot.get(.meta, key) else { return nil }
        let number = Database.decode(bytes)
        if bytes.count != 8 {
            note("meta: \(String(decoding: key, as: UTF8.self)) has \(bytes.count) bytes, not 8")
        } else if !Database.isTime(number) {
            note("meta: \(String(decoding: key, as: UTF8.self)) is \(number), which is no commit's time")
        }
        return number
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
                note("documents: a key of \(key.count) bytes is not a document key")
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
        let fields = try checkState(document, path)
        if try snapshot.get(.meta, Feed.tombstoneKey(key)) != nil { note("\(path): exists and has a tombstone") }
        if try !OnceLedger.has(key, createdAt: document.createVersion, ledger, in: snapshot) {
            note("\(path): the record of its creation is missing")
        }
        try checkChain(of: key, from: document.updateVersion, document, path)

        let certain = IndexEntries.all(of: key, path: path, fields, catalog: catalog, extent: .certain)
        if !catalog.changes.isEmpty { try countUncertain(certain, key, path, fields) }
        for entry in certain {
            if let value = try snapshot.get(.entries, entry.key) {
                entriesFound += 1
                if value != entry.value { noteEntry("\(path): an index entry has another value") }
            } else if !isBeingBuilt(entry.key) {
                noteEntry("\(path): an index entry is missing")
            }
        }
    }

    /// While overrides change, a document may have entries of either version. Those that it has are not strays.
    private mutating func countUncertain(
        _ certain: [IndexEntries.Entry], _ key: [UInt8], _ path: ResourcePath, _ fields: MapValue
    ) throws(Status) {
        let known = Set(certain.map(\.key))
        for entry in IndexEntries.all(of: key, path: path, fields, catalog: catalog, extent: .possible)
        where !known.contains(entry.key) {
            if try snapshot.get(.entries, entry.key) != nil { entriesFound += 1 }
        }
    }

    /// A document in its present or in an earlier state.
    private mutating func checkState(_ document: StoredDocument, _ path: ResourcePath) throws(Status) -> MapValue {
        let fields = try FieldsCodec.decode(document.fields)
        if FieldsCodec.encode(fields) != document.fields { note("\(path): the fields aren't in canonical form") }
        if document.createVersion > document.updateVersion || document.updateVersion > version {
            note("\(path): created at \(document.createVersion), updated at \(document.updateVersion) of \(version)")
        }
        return fields
    }

    private func isBeingBuilt(_ entry: [UInt8]) -> Bool {
        catalog.definitions.contains { definition in
            definition.state == .creating
                && entry.starts(with: IndexKey.idPrefix(definition))
        }
    }

    // MARK: Feed

    /// Follows the states of a document back to the end of the history.
    /// - Parameters:
    ///   - latest: version of its last change.
    ///   - state: the state after that change, nil for a deletion.
    private mutating func checkChain(
        of key: [UInt8], from latest: Int64, _ state: StoredDocument?, _ path: ResourcePath
    ) throws(Status) {
        var changed = latest
        var after = state
        while changed > 0 {
            guard let value = try snapshot.get(.feed, Feed.key(changed, key)) else {
                // A tombstone is forgotten together with its record.
                if changed > earliest || changed == latest && state == nil {
                    note("\(path): the state before \(changed) is missing")
                }
                return
            }
            recordsFound += 1
            let record: Feed.Record
            do throws(Status) {
                record = try Feed.Record(key: Feed.key(changed, key), value: value)
                if let before = record.before { _ = try checkState(before, path) }
            } catch {
                if error.code == .unavailable { throw error }
                return note("\(path): the state before \(changed) can't be read: \(error.message)")
            }
            checkStep(from: record, to: after, path)
            if record.previousVersion >= changed { return }
            changed = record.previousVersion
            after = record.before
        }
    }

    /// Whether a change can have made one state from the other.
    private mutating func checkStep(from record: Feed.Record, to after: StoredDocument?, _ path: ResourcePath) {
        let changed = record.version
        if record.previousVersion >= changed {
            note("\(path): the change at \(changed) comes after one at \(record.previousVersion)")
        }
        if let before = record.before, before.updateVersion != record.previousVersion {
            note("\(path): the state before \(changed) is of \(before.updateVersion), not \(record.previousVersion)")
        }
        guard let after else {
            if record.before == nil { note("\(path): deleted at \(changed), when it didn't exist") }
            return
        }
        // A commit that deletes and sets a document creates it anew.
        if after.createVersion != changed, after.createVersion != record.before?.createVersion {
            note(
                "\(path): changed at \(changed), it was created at \(after.createVersion), "
                    + "which contradicts its history")
        }
    }

    // MARK: Records in `meta`

    private mutating func checkMeta() throws(Status) {
        let cursor = try snapshot.scan(.meta, KeyRange(lower: [], upper: nil), reverse: false, values: true)
        defer { cursor.close() }
        let tombstone = Feed.tombstoneKey([])
        while try cursor.next() {
            try check()
            let key = cursor.key
            if key.starts(with: tombstone) {
                try checkTombstone(of: Array(key.dropFirst(tombstone.count)), cursor.value)
            } else if key.starts(with: Database.noteKey("")) {
                do throws(Status) {
                    let fields = try FieldsCodec.decode(cursor.value)
                    if key.starts(with: Database.noteKey(Database.operationNotes)) { try checkOperation(fields) }
                } catch {
                    note("meta: \(String(decoding: key, as: UTF8.self)) can't be read: \(error.message)")
                }
            } else if key.starts(with: StreamAnswers.prefix) {
                checkStream(key, cursor.value)
            } else if Self.eventKeys.contains(key.first) {
                checkEvent(key, cursor.value)
            } else if key.starts(with: OnceAnswers.prefix) {
                if let problem = try OnceAnswers.problem(key, in: snapshot) { note("meta: \(problem)") }
            } else if key.starts(with: OnceLedger.key) {
                if let problem = try OnceLedger.problem(key, in: snapshot) { note("meta: \(problem)") }
            } else if key == PointInTimeRecovery.key {
                if cursor.value.count != 8 || Database.decode(cursor.value) <= 0 {
                    note("meta: the beginning of point-in-time recovery can't be read")
                }
            } else if ![Database.versionKey, Database.earliestKey, Incarnation.key, CatalogStore.key].contains(key) {
                note("meta: a key of \(key.count) bytes is unknown")
            }
        }
    }

    private func checkOperation(_ fields: MapValue) throws(Status) {
        guard case .bytes(let bytes)? = fields["operation"] else { throw Status(.dataLoss, "it has no operation") }
        _ = try OperationMessage(protobuf: bytes)
    }

    private static let eventKeys: [UInt8?] = [
        EventKeys.number, EventKeys.counts, EventKeys.event, EventKeys.deadLetter, EventKeys.body,
    ]

    /// A record of triggers: their numbers, events that wait, dead letters.
    private mutating func checkEvent(_ key: [UInt8], _ value: [UInt8]) {
        if key.first == EventKeys.number {
            if value.count != 4 { note("meta: the number of a trigger can't be read") }
            return
        }
        // Checked by those who count, and count anew: `TriggerCounts`.
        if key.first == EventKeys.counts { return }
        if key.first == EventKeys.body {
            if key.count != 17 { note("meta: a piece of a trigger's record has no number") }
            return
        }
        let headBytes = key.first == EventKeys.event ? 13 : 21
        guard key.count > headBytes, DocumentKey.decode(Array(key[headBytes...]))?.isDocument == true else {
            return note("meta: an event of a trigger has no document")
        }
        let changed = Database.decode(Array(key[(headBytes - 8)..<headBytes]))
        if changed > version { note("meta: a trigger has an event of \(changed), after the last commit at \(version)") }
    }

    private mutating func checkStream(_ key: [UInt8], _ value: [UInt8]) {
        do throws(Status) {
            if key == StreamAnswers.prefix {
                if value.count != 8 { note("meta: the age of Write streams cannot be read") }
            } else if StreamAnswers.stream(ofHeadKey: key) != nil {
                _ = try StreamAnswers.Head(value)
            } else if !StreamAnswers.isPieceKey(key) || value.isEmpty {
                note("meta: a record of a Write stream is unknown")
            }
        } catch {
            note("meta: \(error.message)")
        }
    }

    private mutating func checkTombstone(of key: [UInt8], _ value: [UInt8]) throws(Status) {
        report.tombstones += 1
        guard let path = DocumentKey.decode(key), path.isDocument, value.count == 8 else {
            return note("meta: a tombstone of \(key.count) bytes can't be read")
        }
        let deleted = Database.decode(value)
        if deleted > version { note("\(path): deleted at \(deleted) of \(version)") }
        if deleted <= 0 { note("\(path): deleted at \(deleted), which is not a commit's time") }
        try checkChain(of: key, from: deleted, nil, path)
    }

    // MARK: Numbers

    private mutating func checkNumbers() throws(Status) {
        let everything = KeyRange(lower: [], upper: nil)
        report.entries = try snapshot.count(.entries, everything, limit: .max)
        report.feedRecords = try snapshot.count(.feed, everything, limit: .max)
        if report.feedRecords != recordsFound {
            note("feed: \(report.feedRecords - recordsFound) records belong to no document or deletion")
        }
        // Entries of removed definitions are still being deleted.
        var strays = report.entries - entriesFound
        for definition in catalog.removed {
            strays -= try snapshot.count(.entries, KeyRange(prefix: IndexKey.idPrefix(definition)), limit: .max)
        }
        if strays != 0 {
            noteEntry("entries: \(strays) index entries belong to no document")
            try nameStrayEntries()
        }
    }

    /// Finds entries that do not belong to their documents.
    private mutating func nameStrayEntries() throws(Status) {
        let cursor = try snapshot.scan(.entries, KeyRange(lower: [], upper: nil), reverse: false, values: false)
        defer { cursor.close() }
        while report.problems.count < Self.problemsMax, try cursor.next() {
            let entry = cursor.key
            if catalog.removed.contains(where: { entry.starts(with: IndexKey.idPrefix($0)) }) { continue }
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
                // Reported when the document was checked; its entries can't be distinguished from strays.
                continue
            }
            let expected = IndexEntries.all(of: key, path: path, fields, catalog: catalog, extent: .possible)
            if !expected.contains(where: { $0.key == entry }) {
                report.problems.append("\(path): an index entry of kind \(entry[0]) has another content")
            }
        }
    }
}
