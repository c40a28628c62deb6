import HearthConcurrency
import HearthModel

/// What a `LoggedStore` does beside its writes: it freezes the active trees, applies them and removes files.
extension LoggedStore: LogApplierUser, TableOwner {
    // MARK: Under the gate

    private static let finishChore = 1
    private static let freezeChore = 2
    private static let emptyChore = 4
    private static let recoverChore = 8
    private static let imageChore = 16
    private static let imageFailureChore = 32

    /// Has something done by whoever holds the gate, which may be the caller. An applier that waited for the gate would
    /// wait long beside a busy writer.
    private func request(chore: Int) {
        counters.chores.bitwiseOr(chore, ordering: .sequentiallyConsistent)
        tryChores()
    }

    func unlockGate() {
        gate.unlock()
        tryChores()
    }

    /// A chore that is requested while the gate is held is seen by the holder after unlocking.
    private func tryChores() {
        while counters.chores.load(ordering: .sequentiallyConsistent) != 0, gate.tryLock() {
            doChores()
            gate.unlock()
        }
    }

    func doChores() {
        let chores = counters.chores.exchange(0, ordering: .sequentiallyConsistent)
        if chores == 0 || !life.isOpen { return }
        if chores & Self.finishChore != 0 {
            finishApplication()
            advanceImage()
            freezeIfDue()
        }
        if chores & Self.imageFailureChore != 0 { failImage() }
        if chores & Self.imageChore != 0 {
            finishImage()
            freezeIfDue()
        }
        if chores & Self.freezeChore != 0 { freeze() }
        if chores & Self.recoverChore != 0 { recover() }
        if chores & Self.emptyChore != 0, isApplied { emptyLog() }
    }

    private func emptyLog() {
        do throws(Status) {
            if mark != .absent {
                try log.checkRemoval()
                try setMark(false)
                // When SQLite's WAL, which has this now, is empty.
                return request()
            }
            try log.removeAll()
        } catch {
            // What can't be removed now is removed later, or at the next start.
        }
    }

    /// Whether the base has everything.
    private var isApplied: Bool { !present.layers.hasFrozen && !hasActive }

    private var hasActive: Bool {
        let version = present
        return Keyspace.allCases.contains { keyspace in
            version.table.roots[LogLayers.activeTree(keyspace)] != nil
                || version.table.roots[LogLayers.activeRanges(keyspace)] != nil
        }
    }

    private var isFreezeDue: Bool {
        activeBytes >= tableBytes || log.bytes.load(ordering: .relaxed) >= options.logBytes
    }

    func freezeIfDue() { if isFreezeDue { freeze() } }

    /// Freezes the active trees, unless there are frozen ones, or the base may not be written now.
    func freeze() {
        var layers = present.layers
        if layers.hasFrozen || !hasActive || imaging?.forbidsFreezing == true { return }
        var roots = table.begin().roots
        for keyspace in Keyspace.allCases {
            roots[LogLayers.frozenTree(keyspace)] = roots[LogLayers.activeTree(keyspace)]
            roots[LogLayers.activeTree(keyspace)] = nil
            roots[LogLayers.frozenRanges(keyspace)] = roots[LogLayers.activeRanges(keyspace)]
            roots[LogLayers.activeRanges(keyspace)] = nil
        }
        layers.number += 1
        layers.hasFrozen = true
        frozenBytes = presentBytes
        publish(roots, layers, ContiguousArray(repeating: 0, count: Keyspace.allCases.count), frozen: activeBytes)
        log.beginCounting()
        let now = MonotonicTime.now
        let application = LogApplication(
            present, sequence: log.lastSequence, segment: log.lastNumber,
            fillNanoseconds: now.nanoseconds - frozenAt.nanoseconds)
        frozenAt = now
        jobs.withLock { self.application = application }
        request()
    }

    /// The base has the frozen trees.
    private func finishApplication() {
        var layers = present.layers
        var (editor, roots) = table.begin()
        for keyspace in Keyspace.allCases {
            editor.removeAll(&roots[LogLayers.frozenTree(keyspace)], bytes: frozenBytes[keyspace.rawValue])
            editor.removeAll(&roots[LogLayers.frozenRanges(keyspace)])
        }
        layers.hasFrozen = false
        publish(roots, layers, presentBytes, frozen: 0)
        if !isFreezeDue { health.writes(areStalled: false) }
        gate.signal()
    }

    private func recover() {
        guard health.isFailing else { return }
        do throws(Status) {
            try log.recover()
            if mark == .doubtful, log.hasFiles { try setMark(true) }
            if try checkCapacity() { return health.commitsRecovered() }
        } catch {
            // It is tried again.
        }
        requestTimer(milliseconds: options.retryMilliseconds)
    }

    func freezeSoon() { request(chore: Self.freezeChore) }

    func revokeSoon() {
        counters.isRevocationDue.store(true, ordering: .relaxed)
        request()
    }

    var keepsManyVersions: Bool { held.areMany(before: present.table.number) }

    private static let busyMilliseconds = 25
    private static let recountsMax = 10

    /// Takes the oldest versions of the table away from the snapshots that hold them, if that is still necessary.
    private func revokeIfDue() {
        if !counters.isRevocationDue.load(ordering: .relaxed) { return }
        // What was kept for versions that have ended since counts until it is sorted.
        for _ in 0..<Self.recountsMax {
            guard gate.tryLock() else { return requestTimer(milliseconds: Self.busyMilliseconds) }
            let hasMore = freePart()
            unlockGate()
            if !hasMore { break }
        }
        counters.isRevocationDue.store(false, ordering: .relaxed)
        let share = options.budget.keptShare(of: self)
        let count = share < 1 ? held.revokeOldest(keeping: share, before: present.table.number) : 0
        if count > 0 {
            counters.revokedSnapshots.add(count, ordering: .relaxed)
            health.revoked(count)
        }
        if !held.finishRevocations() {
            counters.isRevocationDue.store(true, ordering: .relaxed)
            requestTimer(milliseconds: Self.busyMilliseconds)
        }
    }

    // MARK: Requests

    /// Has `work` called soon.
    func request() {
        let isNew = jobs.withLock {
            if isQueued || isStopping { return false }
            isQueued = true
            return true
        }
        if isNew { options.appliers.add(self) }
    }

    /// Has `work` called later, unless it will be called before.
    func requestTimer(milliseconds: Int) {
        let time = MonotonicTime.now.advanced(milliseconds: milliseconds)
        let isNew = jobs.withLock {
            if isStopping { return false }
            if let timer = quiet.timer, timer <= time, timer > MonotonicTime.now { return false }
            quiet.timer = time
            return true
        }
        if isNew { options.appliers.add(self, afterMilliseconds: milliseconds) }
    }

    // MARK: On the appliers' threads

    /// - Returns: false when the store is being closed.
    func beginWork() -> Bool {
        jobs.withLock {
            while isWorking { jobs.wait() }
            if isStopping { return false }
            isWorking = true
            return true
        }
    }

    func endWork() {
        jobs.withLock {
            isWorking = false
            jobs.signal()
        }
    }

    func work() {
        let isFirst = jobs.withLock {
            isQueued = false
            if isWorking || isStopping { return false }
            isWorking = true
            return true
        }
        if !isFirst {
            // Another thread works for this store, and may not have seen what is to be done.
            return requestTimer(milliseconds: 1)
        }
        defer { endWork() }
        if openDueImage() { request(chore: Self.imageChore) }
        revokeIfDue()
        log.prepareSpare()
        if health.isFailing { request(chore: Self.recoverChore) }
        if let application = jobs.withLock({ application }) { apply(application) } else { rest() }
    }

    private func apply(_ application: LogApplication) {
        counters.begunApplication.store(application.number, ordering: .sequentiallyConsistent)
        var pace = ApplicationPace(options.rest) { [self] in isUrgent(application) }
        let isLast: Bool
        do throws(Status) {
            isLast = try application.applySlice(
                to: base, entriesMax: options.sliceEntries, bytesMax: options.sliceBytes, pace: &pace)
        } catch {
            if !life.isOpen { return }
            health.applicationFailed(error)
            jobs.withLock { applicationFailure = error }
            options.budget.set(self, isBlocked: true)
            if counters.isImageWanted.load(ordering: .relaxed) { request(chore: Self.imageFailureChore) }
            return requestTimer(milliseconds: options.retryMilliseconds)
        }
        jobs.withLock {
            applicationFailure = nil
            if isLast { self.application = nil }
        }
        options.budget.set(self, isBlocked: false)
        if isLast {
            health.applicationSucceeded()
            counters.applications.add(1, ordering: .relaxed)
            counters.isApplierFast.store(application.isFast, ordering: .relaxed)
            fitTable()
            log.release(upTo: application.sequence)
            request(chore: Self.finishChore)
        }
        request()
    }

    /// Whether an application may not rest: others wait for the thread, the last one took long beside the time in which its
    /// trees were filled, or at this pace the next trees are full before it ends.
    private func isUrgent(_ application: LogApplication) -> Bool {
        if excess > 0 || !counters.isApplierFast.load(ordering: .relaxed) || !life.isOpen { return true }
        if options.appliers.hasWaiting || counters.isImageWanted.load(ordering: .relaxed) { return true }
        let frozen = counters.frozenBytes.load(ordering: .relaxed)
        return Double(activeBytes) / Double(tableBytes) > Double(application.appliedBytes) / Double(max(1, frozen))
    }

    /// Frees what applications have left, while nobody writes.
    private func freeBlocks() {
        while gate.tryLock() {
            let hasMore = freePart()
            unlockGate()
            if !hasMore { return }
        }
    }

    /// Without an application: whether the store is idle for so long that everything is applied, or that the log's files
    /// are removed.
    private func rest() {
        let now = MonotonicTime.now
        let milliseconds = jobs.withLock {
            quiet.look(counters.commits.load(ordering: .relaxed), now)
        }
        freeBlocks()
        if excess <= 0 { health.writes(areStalled: false) }
        if hasActive {
            if milliseconds >= options.idleMilliseconds { return request(chore: Self.freezeChore) }
            requestTimer(milliseconds: options.idleMilliseconds - milliseconds)
        } else if log.hasFiles {
            if milliseconds >= options.emptyMilliseconds || log.isLost {
                if base.settle() {
                    request(chore: Self.emptyChore)
                } else {
                    requestTimer(milliseconds: options.retryMilliseconds)
                }
                base.maintain()
            } else {
                if milliseconds >= options.idleMilliseconds { base.maintain() }
                requestTimer(milliseconds: options.emptyMilliseconds - milliseconds)
            }
        }
    }
}

/// How long a store wasn't written.
struct LoggedStoreQuiet {
    private var commits = -1
    private var since = MonotonicTime(nanoseconds: 0)
    /// When `work` will be called.
    var timer: MonotonicTime?

    /// - Parameter commits: how many there were so far.
    /// - Returns: milliseconds since the last look that found another number.
    mutating func look(_ commits: Int, _ now: MonotonicTime) -> Int {
        if commits != self.commits {
            self.commits = commits
            since = now
        }
        return Int((now.nanoseconds - since.nanoseconds) / 1_000_000)
    }
}
