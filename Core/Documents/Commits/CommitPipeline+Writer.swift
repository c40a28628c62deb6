import Glibc
import HearthConcurrency
import HearthEngine
import HearthModel
import HearthWire
import Synchronization

/// The writer's thread: groups of commits are worked out, stored and answered.
extension CommitPipeline {
    func write() {
        guard let writer = writer.withLock({ $0 }) else { return }
        while true {
            let largeMustWait = clock.monotonicNanoseconds() < largeNotBefore.load(ordering: .relaxed)
            switch writer.next(largeMustWait: largeMustWait) {
            case .job(.commit(let request), let lane):
                commit(from: request, writer, lane)
                if lane == .large { delayLarge() }
            case .job(.maintenance(let body, let completion), _): completion(maintain(body))
            case .job(.clear(let completion), _): completion(clear())
            case .wait: usleep(Self.waitMicroseconds)
            case .end: return
            }
        }
    }

    /// How often the writer checks for quick commits while only large ones are queued, which must wait.
    private static let waitMicroseconds: UInt32 = 1000

    /// Large commits are delayed for their own bytes when the store can't keep up; if the writer waited, quick ones would wait,
    /// too.
    private func delayLarge() {
        let microseconds = store.takeDelay()
        if microseconds <= 0 { return }
        largeNotBefore.store(clock.monotonicNanoseconds() + UInt64(microseconds) * 1000, ordering: .relaxed)
    }

    func maintain(_ body: (any StoreTransaction) throws(Status) -> Void) -> Result<Void, Status> {
        do {
            try store.write { transaction throws(Status) in try body(transaction) }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// A commit of its own, which leaves no history behind.
    func clear() -> Result<Void, Status> {
        commitClock.beginGroup()
        let version = commitClock.nextVersion(notBefore: 0)
        let recorder = recorder.withLock { $0 }
        let result = maintain { transaction throws(Status) in
            let everything = KeyRange(lower: [], upper: nil)
            for keyspace in [Keyspace.documents, .entries, .feed] {
                try transaction.delete(keyspace, everything, limit: .max)
            }
            for prefix in [Feed.tombstoneKey([]), OnceAnswers.prefix, OnceLedger.key] {
                try transaction.delete(.meta, KeyRange(prefix: prefix), limit: .max)
            }
            try transaction.put(.meta, Database.versionKey, Database.encode(version))
            try transaction.put(.meta, Database.earliestKey, Database.encode(version))
            try recorder?.clear(in: transaction)
        }
        if case .success = result {
            recent.reset(to: version)
            ledger.withLock { $0 = nil }
            commitClock.endGroup(committed: version)
            recorder?.ended(isDurable: true)
            hub.cleared(version: version)
        } else {
            commitClock.endGroup(committed: nil)
            recorder?.ended(isDurable: false)
        }
        return result
    }

    func clear(_ completion: @escaping @Sendable (Result<Void, Status>) -> Void) {
        push(.clear(completion), for: .server, cost: Self.maintenanceCost)
    }

    /// What became of a request of a group, answered when the group is durable.
    package enum Verdict {
        /// Made with the group, or before: see `CommitMark`.
        case committed(CommitOutcome)
        case failed(Status)
        case parked(holder: LockTable.Owner, key: [UInt8]?)
        /// What it was prepared on has changed.
        case outdated
        /// It rests on large documents, and has to be worked out beside the writer.
        case large

        /// Whether the commit goes back to the preparer.
        var goesBack: Bool {
            switch self {
            case .outdated, .large: true
            case .committed, .failed, .parked: false
            }
        }
    }

    /// The bytes of the record that is just stored. Their memory is used again by the next one.
    struct RecordBuffers {
        fileprivate var key: [UInt8] = []
        fileprivate var value: [UInt8] = []
    }

    /// Commits that become durable together.
    struct Group {
        var requests: [Request] = []
        var verdicts: [Verdict] = []
        var sets: [ChangeSet] = []
        var bytes = 0
        var cost = 0
        /// For the records of the changes.
        var buffers = RecordBuffers()
        private var keys: Set<[UInt8]> = []
        private var keyedSets = 0

        /// The documents that `sets` change; few commits ask for them.
        mutating func changedKeys() -> Set<[UInt8]> {
            for set in sets[keyedSets...] { for change in set.changes { keys.insert(change.key) } }
            keyedSets = sets.count
            return keys
        }

        /// Whether one more is taken in, so that it doesn't wait for a sync of its own.
        func hasCapacity(for request: Request) -> Bool {
            bytes + request.sizeBytes <= Limits.groupCommitBytesMax
                && cost + request.cost <= CommitCost.groupUnitsMax
        }
    }

    /// Commits a group.
    /// - Parameter first: the next commit; those behind it in its lane join the group while there is capacity.
    func commit(from first: Request, _ writer: FairWorker<Job>, _ lane: FairWorker<Job>.Lane) {
        if isDropped(first) || isHeldBack(first) { return }
        var steps = GroupSteps(
            pipeline: self, writer: writer, lane: lane, first: first,
            // What comes from now on goes into another group, or the first would wait for as long as others come.
            countMax: min(Limits.groupCommitRequestsMax, writer.count(lane) + 1),
            end: clock.monotonicNanoseconds() + UInt64(Self.groupMillisecondsMax(lane)) * 1_000_000)
        commitClock.beginGroup()
        steps.commit { workOut throws(Status) in
            try store.write { transaction throws(Status) in try workOut(transaction) }
        }
    }

    private static func groupMillisecondsMax(_ lane: FairWorker<Job>.Lane) -> Int {
        lane == .quick ? Limits.groupCommitMillisecondsMax : Limits.groupLargeCommitMillisecondsMax
    }

    /// A group of commits on its way.
    private struct GroupSteps: WriteGroup {
        let pipeline: CommitPipeline
        let writer: FairWorker<Job>
        let lane: FairWorker<Job>.Lane
        let first: Request
        let countMax: Int
        /// In monotonic nanoseconds.
        let end: UInt64
        var group = Group()
        var newIncarnation: Int64?

        mutating func workOut(in transaction: any StoreTransaction) throws(Status) {
            let clock = pipeline.clock
            try pipeline.apply(first, to: transaction, &group)
            while group.requests.count < countMax, clock.monotonicNanoseconds() < end, !areQuickWaiting,
                let job = writer.next(in: lane)
            {
                guard case .commit(let request) = job, group.hasCapacity(for: request) else {
                    // The other lane comes before it.
                    writer.putBack(job, in: lane)
                    break
                }
                if !pipeline.isDropped(request), !pipeline.isHeldBack(request) {
                    try pipeline.apply(request, to: transaction, &group)
                }
            }
            if let last = group.sets.last {
                try transaction.put(.meta, Database.versionKey, Database.encode(last.version))
                newIncarnation = try pipeline.incarnation.begin(in: transaction)
                try pipeline.recorder.withLock { $0 }?.finish(in: transaction)
            }
        }

        /// Whether quick commits wait for a group of large ones, whose next one comes after them.
        private var areQuickWaiting: Bool { lane == .large && writer.count(.quick) > 0 }

        mutating func settle(_ failure: Status?) {
            // The store may have failed before it began with the first.
            if failure != nil, group.requests.isEmpty { group.requests = [first] }
            if failure == nil {
                for set in group.sets { pipeline.recent.append(set) }
                if let newIncarnation { pipeline.incarnation.set(newIncarnation) }
            }
            pipeline.commitClock.endGroup(committed: failure == nil ? group.sets.last?.version : nil)
        }

        func notify() {
            for set in group.sets { pipeline.hub.committed(set) }
        }

        mutating func answer(_ failure: Status?) { pipeline.finish(group, failure) }
    }

    func finish(_ group: Group, _ failure: Status?) {
        if !group.sets.isEmpty { recorder.withLock { $0 }?.ended(isDurable: failure == nil) }
        for (index, request) in group.requests.enumerated() {
            // The last of a failed group may have none.
            let verdict = index < group.verdicts.count ? group.verdicts[index] : nil
            switch verdict {
            case .outdated: prepareAgain(request)
            case .large:
                admission.grow(request)
                prepareAgain(request)
            default: break
            }
            if verdict?.goesBack ?? false { continue }
            if let failure {
                answer(request, .failure(Status(.unavailable, failure.message)))
                continue
            }
            switch verdict {
            case .committed(let outcome): answer(request, .success(outcome))
            case .failed(let status): answer(request, .failure(status))
            case .parked(let holder, let key): park(request, holder, key)
            case .outdated, .large, nil: break
            }
        }
        counters.count(group: group.requests.count, failed: failure != nil)
    }

    /// Answers a commit for which nobody waits any more, without beginning with it.
    func isDropped(_ request: Request) -> Bool {
        guard request.failure != nil || request.isAbandoned else { return false }
        answer(request, .failure(request.failure ?? Self.unwanted))
        return true
    }

    /// Keeps a commit that may not overtake another one of its connection. It is prepared anew when that has come through.
    private func isHeldBack(_ request: Request) -> Bool {
        guard admission.holdsAny else { return false }
        let prepared = request.prepared
        request.prepared = nil
        // It isn't its fault.
        if prepared != nil { request.preparations -= 1 }
        if admission.keeps(request) {
            if prepared != nil { begunPrepared() }
            return true
        }
        request.prepared = prepared
        if prepared != nil { request.preparations += 1 }
        return false
    }

    /// Lets the next one be prepared: when the writer begins with one, or one is answered before that.
    /// - Returns: what the preparer has worked out, of which the request is freed.
    @discardableResult
    func begun(_ request: Request) -> PreparedCommit? {
        guard let prepared = request.prepared else { return nil }
        request.prepared = nil
        begunPrepared()
        return prepared
    }

    private func begunPrepared() {
        preparedWaiting.subtract(1, ordering: .acquiringAndReleasing)
        wakePreparer()
    }

    func prepareAgain(_ request: Request) {
        request.isReturning = true
        if request.preparations >= Limits.commitPreparationsMax {
            answer(request, .failure(Self.tooMuchContention))
        } else {
            pushToPreparer(request)
        }
    }

    /// - Throws: when the store fails, which fails the group; what is wrong with the request is its verdict.
    func apply(
        _ request: Request, to transaction: any StoreTransaction, _ group: inout Group
    ) throws(Status) {
        let started = clock.monotonicNanoseconds()
        defer { admission.measured(request, nanoseconds: clock.monotonicNanoseconds() - started) }
        let known = begun(request)
        group.requests.append(request)
        group.bytes += request.sizeBytes
        group.cost += request.cost
        let decision: Decision
        do throws(Status) {
            decision = try decide(on: request, known, in: transaction, &group)
        } catch {
            // A damaged document is the trouble of those who write to it, not of the group.
            if error.code == .unavailable { throw error }
            return group.verdicts.append(.failed(error))
        }
        switch decision {
        case .no(let verdict): group.verdicts.append(verdict)
        case .yes(let prepared, let set):
            // From here on half of the commit may be written: every failure undoes the group.
            try store(set, prepared.differences, to: transaction, &group.buffers)
            if !set.changes.isEmpty {
                group.sets.append(set)
                if let documents = ledger.withLock({ $0 }) {
                    try OnceLedger.keep(set.changes, of: documents, in: transaction)
                }
                if request.makesEvents {
                    try recorder.withLock { $0 }?.record(set, by: request.author, in: transaction)
                }
            }
            let outcome = Self.outcome(of: request, prepared.staged, version: set.version)
            try request.mark?.put(outcome, in: transaction)
            group.verdicts.append(.committed(outcome))
        }
    }

    static func outcome(of request: Request, _ staged: StagedCommit, version: Int64) -> CommitOutcome {
        CommitOutcome(
            commitTime: Timestamp(microseconds: version), results: staged.results(version: version),
            document: request.returning.flatMap { staged.document(afterWrite: $0, version: version) })
    }

    enum Decision {
        case yes(PreparedCommit, ChangeSet)
        case no(Verdict)
    }

    /// - Parameter known: what the preparer has worked out.
    private func decide(
        on request: Request, _ known: PreparedCommit?, in transaction: any StoreTransaction, _ group: inout Group
    ) throws(Status) -> Decision {
        if let answer = try request.mark?.known(in: transaction) { return .no(.committed(answer)) }
        if let refusal = request.refusal { throw refusal }
        if !request.writes.isEmpty {
            if locks.isDoomed(request.owner) { throw Self.contention }
            if let read = request.transaction {
                try validate(read.readSet, since: read.version, &group, in: transaction)
            }
        }
        guard let prepared = try prepared(request, known, in: transaction, earlier: group.sets) else {
            // Before the writer comes to the next one of its connection.
            admission.holdOthers(behind: request)
            return .no(known == nil ? .large : .outdated)
        }
        if !locks.isIdle(except: request.owner) {
            // The version is given only when the commit no longer waits; until then it is 0.
            // Always in the order of keys, so that no two commits wait for each other.
            let touched = prepared.staged.changes(version: 0).sorted { UTF8Order.compare($0.key, $1.key) < 0 }
            for change in touched {
                if let (holder, isDocument) = try locks.holder(of: change, otherThan: request.owner) {
                    return .no(.parked(holder: holder, key: isDocument ? change.key : nil))
                }
            }
        }
        let version = commitClock.nextVersion(notBefore: request.requestTime.microseconds)
        return .yes(prepared, ChangeSet(version: version, changes: prepared.staged.changes(version: version)))
    }

    /// What a commit will do.
    /// - Returns: nil when that has to be worked out beside the writer, again or for the first time.
    private func prepared(
        _ request: Request, _ known: PreparedCommit?, in transaction: any StoreTransaction, earlier sets: [ChangeSet]
    ) throws(Status) -> PreparedCommit? {
        if let known {
            switch freshness(of: known, earlier: sets) {
            case .fresh: return known
            case .toBeJudged where known.judgedNanoseconds <= CommitCost.judgeAgainNanosecondsMax:
                return try isAllowed(request, known, in: transaction) ? known : nil
            case .toBeJudged, .outdated: return nil
            }
        }
        if request.isLarge { counters.largeOnWriter.add(1, ordering: .relaxed) }
        let (catalog, epoch) = catalog.valueAndEpoch
        do throws(Status) {
            return try PreparedCommit(
                request, on: transaction, version: 0, catalog: catalog, catalogEpoch: epoch,
                latest: commitClock.latest, clock: clock,
                storedBytesMax: request.isLarge ? .max : CommitCost.storedBytesOnWriterMax)
        } catch {
            if error != StagedCommit.isTooMuch { throw error }
            counters.leftToPreparer.add(1, ordering: .relaxed)
            return nil
        }
    }

    /// Has rules judge again what was prepared, within the time that the writer has for that.
    /// - Returns: whether they allow it; false when they take longer.
    /// - Throws: their refusal.
    private func isAllowed(
        _ request: Request, _ prepared: PreparedCommit, in transaction: any StoreTransaction
    ) throws(Status) -> Bool {
        let end = clock.monotonicNanoseconds() + CommitCost.judgeAgainNanosecondsMax
        do throws(Status) {
            try prepared.judgeAgain(request, on: transaction) { [clock] in clock.monotonicNanoseconds() > end }
            return true
        } catch {
            if error != StagedCommit.isTooMuch { throw error }
            counters.leftToPreparer.add(1, ordering: .relaxed)
            return false
        }
    }

    // MARK: Storing

    private func store(
        _ set: ChangeSet, _ differences: [IndexDifference], to transaction: any StoreTransaction,
        _ buffers: inout RecordBuffers
    ) throws(Status) {
        for (change, difference) in zip(set.changes, differences) {
            var previous = change.before?.updateVersion ?? 0
            if change.before == nil, let deleted = try Feed.tombstone(change.key, in: transaction) {
                previous = deleted
                try transaction.delete(.meta, Feed.tombstoneKey(change.key))
            }
            if let after = change.after {
                buffers.value.removeAll(keepingCapacity: true)
                after.append(to: &buffers.value)
                try transaction.put(.documents, change.key, buffers.value)
            } else {
                try transaction.delete(.documents, change.key)
                try transaction.put(.meta, Feed.tombstoneKey(change.key), Database.encode(set.version))
            }
            try difference.store(in: transaction)
            buffers.key.removeAll(keepingCapacity: true)
            Feed.appendKey(set.version, change.key, to: &buffers.key)
            buffers.value.removeAll(keepingCapacity: true)
            Feed.appendValue(previousVersion: previous, change.before, to: &buffers.value)
            try transaction.put(.feed, buffers.key, buffers.value)
        }
    }
}
