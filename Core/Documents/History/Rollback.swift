import HearthEngine
import HearthModel
import HearthWire

/// Takes a store that nobody else uses back to the state that it had at a time, by its own history.
///
/// The feed has the state before each change, so the changes are undone one after the other, the newest first: the document and its
/// index entries become what they were, with their create and update times, and the record leaves the feed. That costs what has
/// changed since, whatever the size of the database, and takes no memory. Then goes what else the undone commits have left: their
/// stored answers, with which a client would take them for made.
///
/// What has no history stays as it is: index definitions, policies of expiry, settings.
package struct Rollback {
    package struct Report: Sendable, Equatable {
        /// Changes of documents that were undone.
        package var undone = 0
        /// The version of the last commit that is left; 0 when there is none.
        package var version: Int64 = 0
    }

    /// Changes, and bytes of their states, that one transaction undoes; and changes of index entries behind which it ends.
    private static let stepChangesMax = 500
    private static let stepBytesMax = 8 << 20
    private static let stepEntriesMax = 50_000
    /// Answers, or streams, that one transaction forgets.
    private static let stepAnswersMax = 2000

    private let catalog: IndexCatalog
    private let ledger: OnceLedger.State?
    private let time: Int64
    /// The changes before this key of the feed are not undone yet; nil for all. A store passes over keys that were deleted lately
    /// one by one.
    private var end: [UInt8]?
    private var undone = 0
    private var stepEntries = 0

    /// What a store's history covers.
    package struct Coverage: Sendable, Equatable {
        /// The store cannot be taken back to a time before this one, in microseconds since 1970; 0 when its history is complete.
        package var earliest: Int64
        /// The version of the first commit of a complete history, before which the store was empty; nil when there is no commit, or
        /// the history is not complete.
        package var first: Int64?
    }

    package static func coverage(of store: any Store) throws(Status) -> Coverage {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        let earliest = try Feed.forgottenVersion(in: snapshot)
        return Coverage(earliest: earliest, first: earliest > 0 ? nil : try Feed.firstVersion(in: snapshot))
    }

    /// - Parameters:
    ///   - time: in microseconds since 1970.
    ///   - check: called between the steps; throws to end.
    /// - Throws: FAILED_PRECONDITION when the history begins later, or an index that was made since can't have a document of then;
    ///   DATA_LOSS when history and documents contradict each other; UNAVAILABLE. The store is of no use then.
    package static func run(
        _ store: any Store, to time: Int64, check: () throws(Status) -> Void = {}
    ) throws(Status) -> Report {
        try run(store, to: time, stepChangesMax: stepChangesMax, check: check)
    }

    /// - Parameter stepChangesMax: smaller in tests.
    static func run(
        _ store: any Store, to time: Int64, stepChangesMax: Int, check: () throws(Status) -> Void = {}
    ) throws(Status) -> Report {
        var (rollback, streams) = try begin(store, time)
        var isMore = true
        while isMore {
            try check()
            isMore = try store.write { transaction throws(Status) in
                try rollback.undoStep(changesMax: stepChangesMax, in: transaction)
            }
        }
        repeat {
            try check()
            isMore = try store.write { transaction throws(Status) in
                try OnceAnswers.forget(after: time, limit: stepAnswersMax, in: transaction)
            }
        } while isMore
        while !streams.isEmpty {
            try check()
            let step = streams.prefix(stepAnswersMax)
            try store.write { transaction throws(Status) in
                for stream in step { try StreamAnswers.forget(stream, after: time, in: transaction) }
            }
            streams.removeFirst(step.count)
        }
        let version = try store.write { transaction throws(Status) in try rollback.finish(in: transaction) }
        return Report(undone: rollback.undone, version: version)
    }

    /// - Returns: also the Write streams that have made commits since.
    private static func begin(
        _ store: any Store, _ time: Int64
    ) throws(Status) -> (rollback: Rollback, streams: ArraySlice<[UInt8]>) {
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        if time < (try Feed.forgottenVersion(in: snapshot)) {
            throw .failedPrecondition("The history of the database begins after that time.")
        }
        let rollback = Rollback(
            catalog: try CatalogStore.load(from: snapshot), ledger: try OnceLedger.state(in: snapshot), time: time)
        return (rollback, try StreamAnswers.streams(after: time, in: snapshot)[...])
    }

    // MARK: Changes

    private init(catalog: IndexCatalog, ledger: OnceLedger.State?, time: Int64) {
        self.catalog = catalog
        self.ledger = ledger
        self.time = time
    }

    /// - Returns: whether there may be more.
    private mutating func undoStep(changesMax: Int, in transaction: any StoreTransaction) throws(Status) -> Bool {
        var records: [Feed.Record] = []
        var bytes = 0
        let range = KeyRange(lower: Feed.range(after: time).lower, upper: end)
        let cursor = try transaction.scan(.feed, range, reverse: true, values: true)
        while records.count < changesMax, bytes < Self.stepBytesMax, try cursor.next() {
            let value = cursor.value
            bytes += value.count
            records.append(try Feed.Record(key: cursor.key, value: value))
        }
        cursor.close()
        stepEntries = 0
        for record in records where stepEntries < Self.stepEntriesMax {
            try undo(record, in: transaction)
            end = Feed.key(record.version, record.documentKey)
            undone += 1
        }
        return !records.isEmpty
    }

    private mutating func undo(_ record: Feed.Record, in transaction: any StoreTransaction) throws(Status) {
        let key = record.documentKey
        guard let path = DocumentKey.decode(key), path.isDocument else {
            throw Status(.dataLoss, "A record of the change feed has no document.")
        }
        let present = try transaction.document(key)
        let deleted = try Feed.tombstone(key, in: transaction)
        guard record.version == present?.updateVersion ?? deleted else {
            throw Status(.dataLoss, "\(path): the change at \(record.version) isn't the last one of the document.")
        }
        try index(record, path, present, in: transaction)
        if let before = record.before {
            try transaction.put(.documents, key, before.stored)
        } else {
            try transaction.delete(.documents, key)
        }
        if deleted != nil { try transaction.delete(.meta, Feed.tombstoneKey(key)) }
        // A deletion is known for as long as its record is.
        if record.before == nil, record.previousVersion > 0,
            try transaction.count(.feed, KeyRange(prefix: Feed.key(record.previousVersion, key)), limit: 1) > 0
        {
            try transaction.put(.meta, Feed.tombstoneKey(key), Database.encode(record.previousVersion))
        }
        try transaction.delete(.feed, Feed.key(record.version, key))
        if let ledger {
            try OnceLedger.keep(
                [Change(key: key, before: present, after: record.before)], of: ledger.documents, in: transaction)
        }
    }

    private mutating func index(
        _ record: Feed.Record, _ path: ResourcePath, _ present: StoredDocument?, in transaction: any StoreTransaction
    ) throws(Status) {
        var after: (tree: MapValue, encoded: [UInt8])?
        if let before = record.before { after = (try FieldsCodec.decode(before.fields), before.fields) }
        do throws(Status) {
            let difference = try IndexComparison.difference(
                key: record.documentKey, path: path, before: present?.fields, after: after, catalog: catalog)
            stepEntries += difference.count
            try difference.store(in: transaction)
        } catch {
            if error.code != .invalidArgument { throw error }
            throw .failedPrecondition(
                "\(path) as it was can't have the indexes that there are now: \(error.message)")
        }
    }

    // MARK: The end

    private func finish(in transaction: any StoreTransaction) throws(Status) -> Int64 {
        let present = try Database.version(of: transaction)
        let version = try Feed.lastVersion(at: time, in: transaction)
        if version >= present { return present }
        if version > 0 {
            try transaction.put(.meta, Database.versionKey, Database.encode(version))
        } else {
            // As before the first commit: positions of readers of the undone history are of another one.
            try transaction.delete(.meta, Database.versionKey)
            try transaction.delete(.meta, Incarnation.key)
        }
        return version
    }
}
