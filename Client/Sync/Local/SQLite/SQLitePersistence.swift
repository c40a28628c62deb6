import HearthCache
import HearthConcurrency
import HearthModel

/// The cache on disk: one SQLite file (`CacheSchema`) and one connection (`CacheDatabase`), used only by the engine's
/// thread.
///
/// Invariants: everything happens in `transaction` and is atomic, memory included (`globals`, the names in memory and
/// the index definitions are restored when a transaction fails). A full disk fails the transaction with
/// `RESOURCE_EXHAUSTED`, a disk that reports errors fails it with `UNAVAILABLE`, and the cache is unchanged. Damage
/// fails with `DATA_LOSS` and is recorded for the next opening, which moves the file aside.
final class SQLitePersistence: Persistence {
    let database: CacheDatabase
    let names: CacheNames
    let mutationSerializer: MutationSerializer
    let targetSerializer: TargetSerializer
    /// The damaged cache that was moved aside when this cache was opened.
    let damage: CacheDamage?
    private let lock: CacheLock
    let journalFile: WriteJournal
    var journal: WriteJournal? { journalFile }
    /// What the journal has and the database does not: see `replay`.
    private var journaled: [WriteJournal.Record]
    let checkpointer: CacheCheckpointer

    var globals: CacheGlobals
    private var savedGlobals: CacheGlobals
    private(set) var currentSequenceNumber: Int64
    private var isInTransaction = false

    private(set) lazy var documentCache = SQLiteRemoteDocumentCache(self)
    private(set) lazy var targetCache = SQLiteTargetCache(self)
    private(set) lazy var referenceDelegate = SQLiteReferenceDelegate(self)
    private(set) lazy var bundleCache = SQLiteBundleCache(self)
    private(set) lazy var indexDefinitions = IndexDefinitions(self)
    private let lruCollector: SQLiteCollector

    var remoteDocuments: any RemoteDocumentCache { documentCache }
    var targets: any TargetCache { targetCache }
    var bundles: any BundleCache { bundleCache }
    var references: any ReferenceDelegate { referenceDelegate }
    /// Exists also for an unlimited cache, and does nothing then.
    var collector: (any LRUCollector)? { lruCollector }

    /// Opens a cache, and creates it when there is none. A damaged cache is moved aside: see `damage`.
    /// - Parameters:
    ///   - sizeBytes: the threshold of the collector; `CollectionParameters.never` for an unlimited cache.
    ///   - onWarning: called when the cache was removed.
    /// - Throws: `FAILED_PRECONDITION` when another client has it open or it has a newer version, `RESOURCE_EXHAUSTED`
    ///   on a full disk.
    convenience init(
        folder: String, appName: String, database: DatabaseName, sizeBytes: Int64, onWarning: (String) -> Void
    ) throws(Status) {
        try self.init(
            files: CacheFiles(folder: folder, appName: appName, database: database), sizeBytes: sizeBytes,
            onWarning: onWarning)
    }

    init(
        files: CacheFiles, sizeBytes: Int64, schema: CacheSchema = .current, onWarning: (String) -> Void
    ) throws(Status) {
        let opening = FirestoreCache(files: files, sizeBytes: sizeBytes, schema: schema)
        let opened = try opening.open(onWarning: onWarning)
        checkpointer = CacheCheckpointer(path: files.database, thresholdPages: opening.checkpointPages)
        database = opened.database
        lock = opened.lock
        damage = opened.damage
        names = CacheNames(opened.database)
        mutationSerializer = MutationSerializer(database: files.databaseName)
        targetSerializer = TargetSerializer(database: files.databaseName)
        let globals = try CacheGlobals(opened.database)
        self.globals = globals
        savedGlobals = globals
        (journalFile, journaled) = try WriteJournal.open(
            files.file, applied: globals.journalNumber, lost: onWarning)
        currentSequenceNumber = globals.highestSequenceNumber
        lruCollector = SQLiteCollector(thresholdBytes: sizeBytes)
        lruCollector.persistence = self
    }

    /// Deletes a cache.
    /// - Throws: `FAILED_PRECONDITION` when it is in use.
    static func clear(folder: String, appName: String, database: DatabaseName) throws(Status) {
        try CacheFiles(folder: folder, appName: appName, database: database).clear()
    }

    deinit { checkpointer.close() }

    // MARK: The journal

    var journalNumber: Int64 {
        get { globals.journalNumber }
        set { globals.journalNumber = newValue }
    }

    /// Puts the writes of calls that had returned when the last process ended into the queues of their users. The
    /// documents are computed as usual, so it needs a local store.
    /// - Parameter onWarning: called with the reason when the write of a record can never be made; it is lost.
    /// - Throws: when the cache cannot be written, or is damaged.
    func replay(clock: any Clock, onWarning: (String) -> Void) throws(Status) {
        if journaled.isEmpty { return }
        // They may be large, and are needed once.
        defer { journaled = [] }
        let store = LocalStore(self, user: .unauthenticated, clock: clock)
        for record in journaled {
            do throws(Status) {
                let write = try read(record)
                _ = try store.asUser(write.user, insteadOf: .unauthenticated) { () throws(Status) in
                    try store.write(write.mutations, at: write.time, journalNumber: record.number).changed
                }
            } catch {
                // What fails in every run must not keep the client from starting.
                if error.isPassing || database.damage != nil { throw error }
                onWarning(
                    "A write in the journal of the cache \(database.path) cannot be made and is lost: \(error.message)")
                try transaction("skip a record", isDurable: false) { () throws(Status) in journalNumber = record.number
                }
            }
        }
    }

    private func read(_ record: WriteJournal.Record) throws(Status) -> JournaledWrite {
        do throws(Status) { return try JournaledWrite(record.contents, mutationSerializer) } catch {
            // Not of the code of a damaged cache.
            throw .invalidArgument(error.message)
        }
    }

    // MARK: Transactions

    /// Whether commits now wait for the disk.
    private var isDurable = false

    func transaction<Result>(
        _ label: StaticString, isDurable: Bool, _ body: () throws(Status) -> Result
    ) throws(Status) -> Result {
        precondition(!isInTransaction, "a transaction inside of another one: \(label)")
        isInTransaction = true
        defer { isInTransaction = false }
        currentSequenceNumber += 1
        do throws(Status) {
            // Completes a rollback that failed before.
            try database.rollBack()
            // SQLite does not allow this inside a transaction.
            try set(isDurable: isDurable)
            // A transaction that only reads takes no lock.
            try database.begin()
            let result = try body()
            if globals != savedGlobals { try globals.save(in: database) }
            try database.commit()
            if globals.journalNumber != savedGlobals.journalNumber { journalFile.applied(globals.journalNumber) }
            savedGlobals = globals
            tendLog()
            return result
        } catch {
            globals = savedGlobals
            names.forget()
            indexDefinitions.forget()
            // The caller needs the first error. If the rollback fails, it is repeated before the next transaction.
            do throws(Status) { try database.rollBack() } catch {}
            throw error
        }
    }

    private func set(isDurable: Bool) throws(Status) {
        if isDurable == self.isDurable { return }
        try database.execute(isDurable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL")
        self.isDurable = isDurable
    }

    /// The transaction's number, for a stored row: numbers continue from it after a restart.
    func useSequenceNumber() -> Int64 {
        globals.highestSequenceNumber = max(globals.highestSequenceNumber, currentSequenceNumber)
        return currentSequenceNumber
    }

    private func tendLog() {
        let pages = database.logPages
        checkpointer.logGrew(to: pages)
        if checkpointer.isBehind(at: pages) {
            // After the whole log is copied, the next transaction restarts it. This transaction is committed, whatever
            // the result of the copy: see `CacheCheckpointer`.
            checkpointer.settle()
            do throws(Status) { try database.checkpoint() } catch {}
        }
    }

    func shutDown() {
        journalFile.close()
        checkpointer.close()
        let isClean = database.damage == nil
        database.close()
        lock.release(isClean: isClean)
    }

    // MARK: Parts of a user

    func mutationQueue(for user: ClientUser) -> any MutationQueue { SQLiteMutationQueue(self, user) }
    func overlayCache(for user: ClientUser) -> any OverlayCache { SQLiteOverlayCache(self, user) }
    func indexManager(for user: ClientUser) -> any IndexManager { SQLiteIndexManager(self, user) }

    // MARK: Sizes

    /// The size of the pages in use. Free pages are reused before the file grows.
    var sizeBytes: Int64 {
        get throws(Status) {
            let pages = try database.first("PRAGMA page_count") { $0.integer(0) } ?? 0
            let free = try database.first("PRAGMA freelist_count") { $0.integer(0) } ?? 0
            return (pages - free) * Int64(CacheSchema.pageSizeBytes)
        }
    }
}

extension CacheDatabase {
    /// Decodes stored protobuf. A decoding error means damage.
    func decoding<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
        do throws(Status) {
            return try body()
        } catch {
            throw damaged("The cache \(path) is damaged: \(error.message)")
        }
    }
}
