import HearthConcurrency
import HearthModel
import Synchronization

/// A log and a table in memory in front of another store, the base.
///
/// A write is one record of the log, made durable, and a new version of the table. When the table is large it is
/// frozen, and an applier transfers it to the base, in large transactions whose changes are sorted: the base writes a
/// page once for many changes. See `LogLayers` for reads, `CommitLog` for the files.
/// Invariants:
///
/// - What the base has is all of the log up to its `LogPosition`, and perhaps some of the frozen trees. All later
///   changes are in the log and in the table.
/// - A snapshot is a version of the table and a snapshot of the base that has no changes which are later than that
///   version; see `snapshot`.
///
/// `@unchecked Sendable`: `gate` and `jobs` guard what is named with them.
package final class LoggedStore: Store, @unchecked Sendable {
    let base: any Store
    let options: LoggedStoreOptions
    let life = StoreLife()
    let health: StoreHealth
    let log: CommitLog
    private let published: Mutex<LoggedVersion>
    let counters = LoggedStoreCounters()

    let held = HeldVersions()

    // Held by whoever writes or changes the layers; guards `table`, `record`, `log`, the bytes and
    // `frozenAt`, `mark`, `imaging`.
    let gate = Monitor()
    let table = Table(trees: LogLayers.treeCount)
    private let record = LogRecord()
    /// For each keyspace, bytes of the active tree's entries.
    private var bytes = ContiguousArray(repeating: 0, count: Keyspace.allCases.count)
    /// The same of the frozen ones.
    var frozenBytes = ContiguousArray(repeating: 0, count: Keyspace.allCases.count)
    /// When the active trees were frozen last, or the store was opened.
    var frozenAt = MonotonicTime.now
    /// Of the base; see `LogPosition.hasLog`.
    var mark = LogMark.absent
    /// Which loss of a log was accepted at the opening; see `LoggedStoreOptions.acceptsLostLog`.
    package private(set) var lossNotice: String?
    /// The image that is being made.
    var imaging: LoggedImaging?

    // Guards the fields below it.
    let jobs = Monitor()
    var application: LogApplication?
    /// The request whose image an applier must open now.
    var dueImage: ImageRequest?
    /// What has become of it, until the gate's holder passes it on.
    var openedImage: (request: ImageRequest, result: Result<any StoreImage, Status>)?
    /// Why the base can't be written.
    var applicationFailure: Status?
    var isWorking = false
    var isQueued = false
    var isStopping = false
    var quiet = LoggedStoreQuiet()

    /// How long the end waits for an image that is being made.
    private static let imageMillisecondsMax = 10_000

    /// How long a writer that waits for the applier sleeps at most: an applier that finds the gate held doesn't wait.
    private static let waitMilliseconds = 5

    /// Opens the log in a folder that is made when it is needed.
    /// - Parameters:
    ///   - base: closed with this store, and when this throws.
    ///   - baseFiles: the base's files. While one of them is not there, nothing is committed.
    ///   - name: the store's name for the observer.
    /// - Throws: DATA_LOSS when the log is damaged.
    package convenience init(
        base: any Store, baseFiles: [String] = [], logFolder: String, name: String,
        options: LoggedStoreOptions = LoggedStoreOptions()
    ) throws(Status) {
        try self.init(
            base: base, disk: SystemLogDisk(folder: logFolder, baseFiles: baseFiles), name: name, options: options)
    }

    package init(base: any Store, disk: any LogDisk, name: String, options: LoggedStoreOptions) throws(Status) {
        self.base = base
        self.options = options
        health = StoreHealth(name: name, observer: options.observer)
        log = CommitLog(disk, options.segments)
        published = Mutex(LoggedVersion(table.present, LogLayers()))
        fitTable()
        // From here on a failure ends in `deinit`, which closes the base.
        try gate.withLock { () throws(Status) in try replay() }
    }

    deinit { close() }

    /// The base's position. A base that has no number gets one before its log is begun.
    private func readPosition() throws(Status) -> LogPosition {
        let snapshot = try base.snapshot()
        let found = Result { () throws(Status) in try LogPosition(snapshot) }
        snapshot.close()
        var position = try found.get()
        if position.owner != 0 || options.isReadOnly { return position }
        position.owner = UInt64.random(in: 1 ... .max)
        try base.write { transaction throws(Status) in
            try transaction.put(.meta, LogPosition.key, position.bytes)
        }
        return position
    }

    /// Reads what the base lacks.
    private func replay() throws(Status) {
        let position = try readPosition()
        let transaction = beginTransaction()
        defer { transaction.close() }
        do throws(Status) {
            try log.open(
                after: position, isReadOnly: options.isReadOnly,
                acceptsLoss: options.acceptsLostLog && !options.isReadOnly
            ) { transaction.replay($0) }
            if !options.isReadOnly { try openMark(position) }
        } catch {
            table.rollBack()
            throw error
        }
        guard transaction.isChanged else { return table.rollBack() }
        publish(transaction.roots, transaction.layers, transaction.bytes)
        if options.isReadOnly { return }
        // A start after this one would take as long.
        if activeBytes >= tableBytes / 4 { freeze() } else { maintain() }
    }

    // MARK: The mark of a log

    /// A base of a former format has no mark, nor one whose log was about to be removed.
    private func openMark(_ position: LogPosition) throws(Status) {
        mark = position.hasLog ? .present : .absent
        if log.hasFiles, mark == .absent {
            // Without space on the disk there are reads.
            do throws(Status) { try setMark(true) } catch {}
        } else if !log.hasFiles, mark == .present {
            try acceptLoss(position)
        }
    }

    /// Files of the log that come back are those of another base.
    private func acceptLoss(_ position: LogPosition) throws(Status) {
        var position = position
        position.hasLog = false
        position.owner = UInt64.random(in: 1 ... .max)
        try base.write { transaction throws(Status) in
            try transaction.put(.meta, LogPosition.key, position.bytes)
        }
        log.begin(owner: position.owner)
        mark = .absent
        lossNotice = "The log was missing. The database goes on without the commits that only the log had."
    }

    /// Sets or deletes the mark, durably. Under `gate`, or when the store is opened.
    func setMark(_ hasLog: Bool) throws(Status) {
        mark = .doubtful
        try base.write { transaction throws(Status) in
            var position = try LogPosition(transaction)
            position.hasLog = hasLog
            try transaction.put(.meta, LogPosition.key, position.bytes)
        }
        mark = hasLog ? .present : .absent
    }

    package var isOpen: Bool { life.isOpen }

    // MARK: Snapshots

    var present: LoggedVersion { published.withLock { $0 } }

    package func snapshot() throws(Status) -> any Snapshot { try snapshot(.short) }

    /// No lock is held over both parts of a snapshot. The version is taken first, with number n: all frozen trees before
    /// n are in the base, and those of n are in the version, or in the base, too. Then the base's snapshot is taken. It
    /// may have some or all changes of the trees n, which the version's trees repeat. It must not have any of later
    /// ones: an applier raises `begunApplication` before the first of them, so that when it is still n after the
    /// snapshot, there are none in it. Otherwise the present version, whose number is at least that, is tried.
    package func snapshot(_ use: SnapshotUse) throws(Status) -> any Snapshot {
        while true {
            try life.check()
            let version = present
            let snapshot = try base.snapshot(use)
            if counters.begunApplication.load(ordering: .sequentiallyConsistent) <= version.layers.number {
                return LoggedSnapshot(version, snapshot, life, held, use)
            }
            snapshot.close()
        }
    }

    // MARK: Writing

    package func write<Result>(_ body: (any StoreTransaction) throws(Status) -> Result) throws(Status) -> Result {
        slowDown()
        var failure: Status?
        defer { if let failure { report(failure) } }
        gate.lock()
        defer { unlockGate() }
        try life.check()
        if options.isReadOnly { throw .failedPrecondition("The database was opened for reading only.") }
        do throws(Status) {
            try waitForCapacity()
        } catch {
            failure = error
            throw error
        }
        return try commit(body, &failure)
    }

    /// - Parameter failure: set when the log or the base, and not the body, failed.
    private func commit<Result>(
        _ body: (any StoreTransaction) throws(Status) -> Result, _ failure: inout Status?
    ) throws(Status) -> Result {
        defer { record.clear() }
        let transaction = beginTransaction()
        let result: Result
        do throws(Status) {
            defer { transaction.close() }
            result = try body(transaction)
            // The body may have caught it.
            if let failure = transaction.baseFailure { throw failure }
        } catch {
            failure = transaction.baseFailure
            table.rollBack()
            throw error
        }
        guard transaction.isChanged else {
            table.rollBack()
            return result
        }
        do throws(Status) {
            if mark != .present {
                // When the process ends between the two, there is a log without a record.
                try log.begin(for: record)
                try setMark(true)
            }
            if try log.append(record) { request() }
            counters.lastWriteBytes.store(record.count, ordering: .relaxed)
        } catch {
            failure = error
            table.rollBack()
            throw error
        }
        publish(transaction.roots, transaction.layers, transaction.bytes)
        counters.commits.add(1, ordering: .relaxed)
        if health.isFailing { health.commitsRecovered() }
        freezeIfDue()
        return result
    }

    private func beginTransaction() -> LoggedTransaction {
        LoggedTransaction(
            present, table.begin().editor, record, base: base, bytes: bytes, rangeKeysMin: options.rangeKeysMin, life)
    }

    /// Makes the editor's work the present version. Under `gate`.
    func publish(
        _ roots: ContiguousArray<TableBlock?>, _ layers: LogLayers, _ bytes: ContiguousArray<Int>, frozen: Int? = nil
    ) {
        let version = LoggedVersion(table.commit(roots), layers)
        var former: LoggedVersion? = published.withLock { present in
            defer { present = version }
            return present
        }
        // Outside the lock, as ending may take the time of a wait.
        withExtendedLifetime(former) {}
        former = nil
        self.bytes = bytes
        let active = bytes.reduce(0, +)
        counters.activeBytes.store(active, ordering: .relaxed)
        counters.hasFrozen.store(layers.hasFrozen, ordering: .relaxed)
        if let frozen { counters.frozenBytes.store(frozen, ordering: .relaxed) }
        options.budget.set(self, active: active, frozen: frozen ?? counters.frozenBytes.load(ordering: .relaxed))
        noteKeptBytes()
    }

    /// Notes what snapshots keep of earlier versions. Under `gate`.
    private func noteKeptBytes() {
        let bytes = table.keptBytes
        if counters.keptBytes.exchange(bytes, ordering: .relaxed) == bytes { return }
        options.budget.set(self, kept: bytes)
    }

    /// Frees a part of what long snapshots have kept. Under `gate`.
    /// - Returns: whether there is more.
    func freePart() -> Bool {
        defer { noteKeptBytes() }
        return table.freePart()
    }

    /// Bytes at which the active trees are frozen.
    var tableBytes: Int { counters.tableBytes.load(ordering: .relaxed) }

    func fitTable() { counters.tableBytes.store(options.tableBytes(baseBytes: base.sizeBytes), ordering: .relaxed) }

    var activeBytes: Int { counters.activeBytes.load(ordering: .relaxed) }

    /// The sizes of the active trees, which a change of the layers keeps.
    var presentBytes: ContiguousArray<Int> { bytes }

    /// Reports a failure to the observer; an applier finds out when it is over.
    private func report(_ failure: Status) {
        guard [.unavailable, .dataLoss, .internal, .failedPrecondition].contains(failure.code), life.isOpen else {
            return
        }
        counters.failedCommits.add(1, ordering: .relaxed)
        health.commitFailed(failure)
        requestTimer(milliseconds: options.retryMilliseconds)
    }

    /// Reports files that another program has removed or replaced, also while nobody writes. Commits look for themselves.
    package func checkFiles() {
        if options.isReadOnly || !gate.tryLock() { return }
        let result = Result { () throws(Status) in try log.checkFiles() }
        unlockGate()
        if case .failure(let failure) = result, life.isOpen, !health.isFailing {
            health.commitFailed(failure)
            requestTimer(milliseconds: options.retryMilliseconds)
        }
    }

    // MARK: Back-pressure

    /// Delays a write while the applier is slower than the writes: the more, the larger the table. So the two meet
    /// somewhere, and no write has to wait for all of the applier's work. Beside large writes, which wait elsewhere
    /// (`takeDelay`), the others wait for their part of what was written lately.
    private func slowDown() {
        let bytes = takeLastWrite(isLarge: false)
        let microseconds = delay(after: bytes, share: 1 - counters.largeShare)
        if microseconds > 0 { options.pause(microseconds) }
    }

    /// Microseconds: at most a part of the bound, or what the last write takes at the speed of delayed ones. Without regard to
    /// their sizes, large writes would fill the table in spite of the delays.
    private func delay(after bytes: Int, share: Double) -> Int {
        let excess = excess
        if excess <= 0 { return 0 }
        let atSpeed = Double(bytes) / Double(options.delayedBytesPerMicrosecond)
        let microseconds = Int(excess * max(Double(options.delayMicrosecondsMax) * share, atSpeed))
        if microseconds > 0 { counters.delayedWrites.add(1, ordering: .relaxed) }
        return microseconds
    }

    private func takeLastWrite(isLarge: Bool) -> Int {
        let bytes = counters.lastWriteBytes.exchange(0, ordering: .relaxed)
        counters.noteWrite(Double(bytes) / Double(max(1, tableBytes / Self.lately)), isLarge: isLarge)
        return bytes
    }

    /// The part of a table that was written lately.
    private static let lately = 4

    package func takeDelay() -> Int {
        let bytes = takeLastWrite(isLarge: true)
        return bytes > 0 ? delay(after: bytes, share: 1) : 0
    }

    /// From 0 to 1, where writes wait.
    var excess: Double {
        guard counters.hasFrozen.load(ordering: .relaxed) else { return options.budget.excess(ownBytes) }
        let table = Self.excess(activeBytes, tableBytes, options.tablesMax)
        let log = Self.excess(log.bytes.load(ordering: .relaxed), options.logBytes, options.tablesMax)
        return min(1, max(table, log, options.budget.excess(ownBytes)))
    }

    private static func excess(_ bytes: Int, _ bound: Int, _ times: Int) -> Double {
        Double(bytes - bound) / Double(max(1, bound * (times - 1)))
    }

    private var ownBytes: Int { activeBytes + counters.frozenBytes.load(ordering: .relaxed) }

    private var isFull: Bool {
        activeBytes >= tableBytes * options.tablesMax
            || log.bytes.load(ordering: .relaxed) >= options.logBytes * options.tablesMax
    }

    /// Whether a write need not wait. Under `gate`.
    /// - Throws: UNAVAILABLE when waiting would be in vain.
    func checkCapacity() throws(Status) -> Bool {
        let hasFrozen = present.layers.hasFrozen
        if !(isFull && hasFrozen), !options.budget.isFull(ownBytes) { return true }
        if hasFrozen {
            if let failure = jobs.withLock({ applicationFailure }) { throw .unavailable(failure.message) }
            return false
        }
        if !options.budget.isBlocked { return false }
        // What this store has can be applied, whatever others have.
        if activeBytes == 0 { throw Self.othersAreBlocked }
        freeze()
        return false
    }

    private static let othersAreBlocked = Status.unavailable(
        "The memory for changes is used up, because another database can't be written to the disk.")

    /// Waits while the active trees or the log are too large to grow. Under `gate`, which is released meanwhile.
    private func waitForCapacity() throws(Status) {
        var isFirst = true
        while try !checkCapacity() {
            if isFirst {
                counters.stalledWrites.add(1, ordering: .relaxed)
                health.writes(areStalled: true)
            }
            isFirst = false
            gate.wait(until: MonotonicTime.now.advanced(milliseconds: Self.waitMilliseconds))
            try life.check()
            doChores()
        }
    }

    // MARK: Store

    package func maintain() {
        guard life.isOpen, !options.isReadOnly else { return }
        if gate.tryLock() {
            _ = freePart()
            unlockGate()
        }
        if activeBytes > 0 || log.hasFiles { requestTimer(milliseconds: options.idleMilliseconds) }
    }

    package func damage(max: Int) throws(Status) -> [String] {
        var found = try base.damage(max: max)
        guard beginWork() else { return found }
        defer { endWork() }
        gate.lock()
        defer { unlockGate() }
        try life.check()
        let snapshot = try base.snapshot()
        defer { snapshot.close() }
        found += try log.damage(after: try LogPosition(snapshot), max: max - found.count)
        return found
    }

    package var notice: String? { gate.withLock { log.tornRecord } }

    package var sizeBytes: Int? { base.sizeBytes.map { $0 + log.sizeBytes } }

    package var statistics: StoreStatistics {
        var statistics = base.statistics
        statistics.logBytes += log.bytes.load(ordering: .relaxed)
        statistics.failedCommits += counters.failedCommits.load(ordering: .relaxed)
        statistics.revokedSnapshots += counters.revokedSnapshots.load(ordering: .relaxed)
        statistics.tableBytes = activeBytes + counters.frozenBytes.load(ordering: .relaxed)
        statistics.applications = counters.applications.load(ordering: .relaxed)
        statistics.delayedWrites = counters.delayedWrites.load(ordering: .relaxed)
        statistics.stalledWrites = counters.stalledWrites.load(ordering: .relaxed)
        return statistics
    }

    package func close() { close(because: .unavailable("The database is closed.")) }

    package func close(because reason: Status) {
        finishImage(within: Self.imageMillisecondsMax)
        let wasOpen = gate.withLock {
            let isOpen = life.isOpen
            life.end(reason)
            endImage(reason)
            gate.signal()
            return isOpen
        }
        if !wasOpen { return }
        jobs.withLock {
            isStopping = true
            while isWorking { jobs.wait() }
            application = nil
            dueImage = nil
            openedImage = nil
        }
        gate.withLock {
            log.close()
            dropTable()
        }
        options.budget.remove(self)
        base.close(because: reason)
        health.closed()
    }

    /// Whoever keeps a closed store shouldn't keep its table.
    private func dropTable() {
        var (editor, roots) = table.begin()
        for index in roots.indices { editor.removeAll(&roots[index]) }
        let version = LoggedVersion(table.commit(roots), LogLayers())
        published.withLock { $0 = version }
        while table.freePart() {}
    }
}

/// Whether the base has the mark that there is a log; `doubtful` when that could not be written.
enum LogMark { case absent, present, doubtful }

/// State that the threads of a store share without a lock.
final class LoggedStoreCounters: Sendable {
    /// The number of the last frozen trees of which the base may have something.
    let begunApplication = Atomic<UInt64>(0)
    let tableBytes = Atomic(0)
    let activeBytes = Atomic(0)
    let frozenBytes = Atomic(0)
    let hasFrozen = Atomic(false)
    let isApplierFast = Atomic(false)
    let isImageWanted = Atomic(false)
    let keptBytes = Atomic(0)
    let isRevocationDue = Atomic(false)
    /// Chores for whoever holds the gate.
    let chores = Atomic(0)
    let commits = Atomic(0)
    let lastWriteBytes = Atomic(0)
    private let large = Mutex(0.0)

    /// The part, from 0 to 1, of what was written lately that was written by large writes.
    var largeShare: Double { large.withLock { $0 } }

    /// - Parameter part: the write's part of what is called lately.
    func noteWrite(_ part: Double, isLarge: Bool) {
        if part <= 0 { return }
        large.withLock { share in share += ((isLarge ? 1 : 0) - share) * min(1, part) }
    }

    // For monitoring.
    let failedCommits = Atomic(0)
    let applications = Atomic(0)
    let delayedWrites = Atomic(0)
    let stalledWrites = Atomic(0)
    let revokedSnapshots = Atomic(0)
}
