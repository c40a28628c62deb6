import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthDocuments
import Synchronization

/// The targets of one event loop in one database. `@unchecked Sendable`: belongs to the loop, except `receive` and the
/// tables that it reads.
final class LoopSubscriptions: ChangeReceiver, @unchecked Sendable {
    let database: Database
    let loop: EventLoop
    /// All commits up to this version that concern the loop's targets have been applied.
    private(set) var seen: Int64 = 0 {
        didSet {
            if seen == oldValue { return }
            encodings = ListenEncodings()
            judgements.forget()
        }
    }
    /// Messages about one version that many streams send.
    var encodings = ListenEncodings()
    private let tables = Mutex(Tables())
    private var queries: [ByteDigest: SharedQuery] = [:]
    /// Pending work, in the order of commits; see `work`.
    private var jobs = Queue<Job>()
    private var present: Progress?
    /// The change of it that is being matched with targets.
    private var matching: ChangeMatching?
    private var toBeJudged = Queue<(target: ListenSubscription, stream: ListenStream)>()
    private var touched: [ObjectIdentifier: ListenStream] = [:]
    private var toProceed = Queue<ListenStream>()
    /// Targets of streams that have ended.
    private var leaving = Queue<Leaving>()
    private var leavesNext = false
    private var isWorking = false
    private var isScheduled = false
    /// For the state at `seen`, during a slice of judgements.
    private var judgementReader: StateReader?
    private var judgements = Judgements()
    private var viewOfTick: ReadView?
    private var streams: [ObjectIdentifier: ListenStream] = [:]

    init(_ database: Database, _ loop: EventLoop) {
        self.database = database
        self.loop = loop
    }

    /// The targets by what they watch. The loop changes the tables; the writer's thread reads them, so that a commit
    /// that concerns no target wakes no loop.
    private struct Tables {
        var documents: [ByteKey: [ObjectIdentifier: ListenSubscription]] = [:]
        /// Targets by the documents that decide who may see them.
        var dependents: [ByteKey: [ObjectIdentifier: ListenSubscription]] = [:]
        var queries: [WatchScope: QueryIndex<SharedQuery>] = [:]

        func concerns(_ change: Change, _ scopes: [WatchScope]) throws(Status) -> Bool {
            let key = ByteKey(change.key)
            if documents[key] != nil || dependents[key] != nil { return true }
            for scope in scopes {
                if let index = queries[scope], try index.hasCandidates(for: change) { return true }
            }
            return false
        }
    }

    private enum Job {
        case event(ChangeEvent)
        case settled(Int64, @Sendable (Int64) -> Void)
    }

    private struct Leaving {
        /// Targets do not own it.
        let stream: ListenStream
        var targets: [ListenSubscription]
    }

    /// A commit that is being applied.
    private struct Progress {
        var set: ChangeSet
        var scopes: [[WatchScope]]
        var next = 0
    }

    /// The most changes of a commit that the writer's thread checks; larger commits go to every loop that watches one
    /// of their collections.
    private static let checkedChangesMax = 64
    /// The most bytes of documents that it checks.
    private static let checkedBytesMax = 256 << 10

    func receive(_ event: ChangeEvent) {
        if case .committed(let set, let scopes) = event, Self.isSmall(set) {
            let isOfConcern = tables.withLock { tables in
                do throws(Status) {
                    for (change, scopes) in zip(set.changes, scopes) where try tables.concerns(change, scopes) {
                        return true
                    }
                    return false
                } catch {
                    // The loop finds the same error, and reports it to its streams.
                    return true
                }
            }
            if !isOfConcern { return }
        }
        loop.execute { [self] in add(.event(event)) }
    }

    private static func isSmall(_ set: ChangeSet) -> Bool {
        if set.changes.count > checkedChangesMax { return false }
        var bytes = 0
        for change in set.changes { bytes += (change.before?.fields.count ?? 0) + (change.after?.fields.count ?? 0) }
        return bytes <= checkedBytesMax
    }

    func add(_ stream: ListenStream) { streams[ObjectIdentifier(stream)] = stream }

    func remove(_ stream: ListenStream) { streams[ObjectIdentifier(stream)] = nil }

    var isUnused: Bool { streams.isEmpty }

    /// The query with this encoding, created when nobody watches it yet.
    /// - Parameter held: for its memory.
    /// - Throws: `ListenSubscription.noMemory`.
    func query(
        _ string: [UInt8], _ held: @autoclosure () -> MemoryReservation, _ make: () throws(Status) -> LiveQuery
    ) throws(Status) -> SharedQuery {
        let digest = ByteDigest(string)
        if let known = queries[digest] { return known }
        let live = try make()
        let held = held()
        guard held.resize(to: live.heldBytes(requestBytes: string.count)) else { throw ListenSubscription.noMemory }
        return SharedQuery(digest, live, held)
    }

    /// - Throws: UNAVAILABLE when the database is closed.
    func add(_ target: ListenSubscription) throws(Status) {
        tables.withLock { tables in
            switch target.kind {
            case .documents(let keys):
                for key in keys { tables.documents[ByteKey(key), default: [:]][ObjectIdentifier(target)] = target }
            case .query(let shared):
                if shared.targets.isEmpty {
                    tables.queries[shared.live.scope, default: QueryIndex()].insert(shared, for: shared.live)
                }
            }
        }
        if case .query(let shared) = target.kind {
            if shared.targets.isEmpty { queries[shared.digest] = shared }
            shared.add(target)
        }
        // Last: every commit that the hub delivers from here on finds the target.
        if database.changes.add(target.scopes, for: self) { return }
        forget(target)
        throw database.closedStatus ?? .unavailable("The database is closed.")
    }

    /// Has a target judged again when one of these documents changes, instead of the previous ones.
    /// - Returns: the version after which changes are noticed.
    /// - Throws: UNAVAILABLE when the database is closed.
    func depend(_ target: ListenSubscription, on keys: [[UInt8]]) throws(Status) -> Int64 {
        forgetDependencies(of: target)
        target.dependencies = keys
        tables.withLock { tables in
            for key in keys { tables.dependents[ByteKey(key), default: [:]][ObjectIdentifier(target)] = target }
        }
        guard database.changes.add(keys.map { .document($0) }, for: self) else {
            throw database.closedStatus ?? .unavailable("The database is closed.")
        }
        var since: Int64 = 0
        database.changes.withVersion { since = $0 }
        return since
    }

    private func forgetDependencies(of target: ListenSubscription) {
        if target.dependencies.isEmpty { return }
        database.changes.remove(target.dependencies.map { .document($0) }, for: self)
        tables.withLock { Self.remove(target, target.dependencies, from: &$0.dependents) }
        target.dependencies = []
    }

    private static func remove(
        _ target: ListenSubscription, _ keys: [[UInt8]],
        from table: inout [ByteKey: [ObjectIdentifier: ListenSubscription]]
    ) {
        for key in keys {
            let key = ByteKey(key)
            table[key]?[ObjectIdentifier(target)] = nil
            if table[key]?.isEmpty == true { table[key] = nil }
        }
    }

    /// The rules have changed.
    func judgeAll() {
        judgements.forget()
        for stream in streams.values {
            for target in stream.targets.values { judgeAgain(target) }
            touched[ObjectIdentifier(stream)] = stream
        }
        work()
    }

    /// Once, however many of its documents have changed.
    private func judgeAgain(_ target: ListenSubscription) {
        guard !target.isToBeJudgedAgain, let stream = target.stream else { return }
        target.isToBeJudgedAgain = true
        toBeJudged.append((target, stream))
    }

    /// Removes the targets of a stream that has ended, some in each tick of the loop.
    func remove(_ targets: [ListenSubscription], of stream: ListenStream) {
        if targets.isEmpty { return }
        // No more changes are noted for them.
        for target in targets { target.since = .max }
        leavingCount += targets.count
        leaving.append(Leaving(stream: stream, targets: targets))
        workLater()
    }

    /// Targets that are still in the tables.
    private(set) var leavingCount = 0
    /// For tests: the number of repeated judgements of documents or queries.
    private(set) var judgementCount = 0
    /// For tests: the number of queries and targets matched with changes, and the maximum in one tick.
    private(set) var matchingSteps = 0
    private(set) var matchingStepsOfTickMax = 0

    private func removeNextLeaving(_ steps: inout Int) {
        guard var next = leaving.popFirst(), let target = next.targets.popLast() else { return }
        leavingCount -= 1
        if !next.targets.isEmpty { leaving.append(next) }
        steps -= Self.stepsOfJudgement + Self.stepsOfKey * (target.scopes.count + target.dependencies.count)
        remove(target)
    }

    func remove(_ target: ListenSubscription) {
        // A change that is being matched is not noted for it.
        target.since = .max
        forgetDependencies(of: target)
        database.changes.remove(target.scopes, for: self)
        forget(target)
    }

    private func forget(_ target: ListenSubscription) {
        switch target.kind {
        case .documents(let keys): tables.withLock { Self.remove(target, keys, from: &$0.documents) }
        case .query(let shared):
            shared.remove(target)
            guard shared.targets.isEmpty else { return }
            queries[shared.digest] = nil
            tables.withLock { tables in
                tables.queries[shared.live.scope]?.remove(shared)
                if tables.queries[shared.live.scope]?.isEmpty == true { tables.queries[shared.live.scope] = nil }
            }
        }
    }

    /// Runs `body` on the loop with a version up to which all commits that concern the loop have been applied.
    func settle(_ body: @escaping @Sendable (Int64) -> Void) {
        // Everything that was delivered earlier is in the loop's queue before this job.
        database.changes.withVersion { version in
            loop.execute { [self] in add(.settled(version, body)) }
        }
    }

    /// The state at a version, shared by all callers in this tick of the loop.
    func view(at version: Int64) throws(Status) -> ReadView {
        if let viewOfTick, viewOfTick.version == version { return viewOfTick }
        let view = try database.view(atVersion: version)
        if viewOfTick == nil { loop.execute { [weak self] in self?.viewOfTick = nil } }
        viewOfTick = view
        return view
    }

    // MARK: Work in slices

    /// The work of one tick of the loop, in steps of about a microsecond.
    private static let sliceSteps = 5000
    /// The steps that a judgement costs, or a stream that proceeds.
    private static let stepsOfJudgement = 20
    /// The steps that removing a watched document costs.
    private static let stepsOfKey = 2
    /// A slice ends after this time, whatever it has done.
    private static let sliceMilliseconds = 1

    /// A commit is being applied, or rights that it may have changed are being judged: nothing of the new state may be
    /// sent yet. A stream that waits for that calls `proceedLater`.
    var isUnsettled: Bool { present != nil || !toBeJudged.isEmpty }

    func proceedLater(_ stream: ListenStream) { touched[ObjectIdentifier(stream)] = stream }

    private func add(_ job: Job) {
        jobs.append(job)
        work()
    }

    /// Applies commits, judges the targets that they concern, and lets the streams proceed: some of it now, the rest in
    /// later ticks of the loop, so that others on the loop are served in between.
    private func work() {
        if isWorking { return }
        isWorking = true
        var steps = Self.sliceSteps
        let end = MonotonicTime.now.advanced(milliseconds: Self.sliceMilliseconds)
        let matchingStepsBefore = matchingSteps
        defer { matchingStepsOfTickMax = max(matchingStepsOfTickMax, matchingSteps - matchingStepsBefore) }
        var isOver = false
        while steps > 0, !isOver {
            isOver = !step(&steps)
            if MonotonicTime.now > end { break }
        }
        judgementReader = nil
        if toBeJudged.isEmpty { judgements.forget() }
        isWorking = false
        if !isOver { workLater() }
    }

    private func workLater() {
        if isScheduled { return }
        isScheduled = true
        loop.execute { [self] in
            isScheduled = false
            work()
        }
    }

    /// - Returns: false when nothing is left to do.
    private func step(_ steps: inout Int) -> Bool {
        if present != nil {
            takeNext(&steps)
        } else if let (target, stream) = toBeJudged.popFirst() {
            steps -= Self.stepsOfJudgement * target.judgementCount
            target.isToBeJudgedAgain = false
            judgementCount += target.judgementCount
            stream.judgeAgain(target)
            touched[ObjectIdentifier(stream)] = stream
        } else if let stream = toProceed.popFirst() {
            steps -= Self.stepsOfJudgement
            stream.proceed()
        } else if !touched.isEmpty {
            for stream in touched.values { toProceed.append(stream) }
            touched = [:]
        } else if !leaving.isEmpty, leavesNext || jobs.isEmpty {
            leavesNext = false
            removeNextLeaving(&steps)
        } else if let job = jobs.popFirst() {
            leavesNext = true
            steps -= 1
            take(job)
        } else {
            return false
        }
        return true
    }

    private func take(_ job: Job) {
        switch job {
        case .settled(let version, let body):
            seen = max(seen, version)
            body(seen)
        case .event(.committed(let set, let scopes)):
            seen = max(seen, set.version)
            present = Progress(set: set, scopes: scopes)
        case .event(.cleared(let version)):
            seen = max(seen, version)
            for shared in queries.values { shared.forgetWindow(version) }
            for stream in streams.values {
                stream.startOver()
                touched[ObjectIdentifier(stream)] = stream
            }
        case .event(.closed(let reason)):
            for stream in streams.values { stream.end(reason) }
        }
    }

    /// Applies the next part of a commit: finds the targets that a change concerns, or matches it with one of them.
    private func takeNext(_ steps: inout Int) {
        if let matching { return show(matching, &steps) }
        guard var progress = present else { return }
        guard progress.next < progress.set.changes.count else {
            present = nil
            return
        }
        let change = progress.set.changes[progress.next]
        let scopes = progress.scopes[progress.next]
        progress.next += 1
        present = progress
        do throws(Status) {
            steps -= 5
            // Before anything of the new state is sent.
            for target in try take(change, scopes, progress.set.version) { judgeAgain(target) }
        } catch {
            giveUp(error)
        }
    }

    private func show(_ change: ChangeMatching, _ steps: inout Int) {
        steps -= 2
        matchingSteps += 1
        do throws(Status) {
            if try !change.step({ touched[ObjectIdentifier($0)] = $0 }) { matching = nil }
        } catch {
            giveUp(error)
        }
    }

    /// Stored data cannot be read: no stream can be served.
    private func giveUp(_ status: Status) {
        present = nil
        matching = nil
        for stream in streams.values { stream.end(status) }
    }

    /// Reads the state that is sent next, for judgements about it: a later commit must not decide who sees an earlier
    /// one.
    private func readerForJudgement() throws(Status) -> StateReader {
        if let judgementReader, judgementReader.view.version == seen {
            judgementReader.renewAllowance()
            return judgementReader
        }
        let reader = StateReader(
            try database.view(atVersion: seen), decodedBytesMax: Limits.judgedOnLoopBytesMax)
        if isWorking { judgementReader = reader }
        return reader
    }

    /// The result of rules about the state that is sent next. One evaluation serves all targets that rules cannot
    /// distinguish.
    /// - Returns: the documents on which the result depends.
    /// - Throws: PERMISSION_DENIED; `WorkMeter.isHeavier`.
    func judgement(
        _ key: Judgements.Key, _ judge: (StateReader) throws(Status) -> [[UInt8]]
    ) throws(Status) -> [[UInt8]] {
        if let known = judgements[key] { return try known.get() }
        let reader = try readerForJudgement()
        do throws(Status) {
            let dependencies = try judge(reader)
            judgements.note(.success(dependencies), key)
            return dependencies
        } catch {
            // Other errors may disappear the next time.
            if error.code == .permissionDenied { judgements.note(.failure(error), key) }
            throw error
        }
    }

    /// Finds the targets that a change concerns; `matching` notifies them.
    /// - Returns: targets whose visibility the change may affect.
    private func take(_ change: Change, _ scopes: [WatchScope], _ version: Int64) throws(Status) -> [ListenSubscription]
    {
        let (watching, dependents, queries) = try tables.withLock { tables throws(Status) in
            var queries: [SharedQuery] = []
            for scope in scopes {
                if let index = tables.queries[scope] { queries += try index.candidates(for: change) }
            }
            let key = ByteKey(change.key)
            return (tables.documents[key], tables.dependents[key], queries)
        }
        if watching != nil || !queries.isEmpty {
            matching = ChangeMatching(
                change, version, watching: watching.map { Array($0.values) } ?? [], queries: queries)
        }
        return dependents.map { Array($0.values) } ?? []
    }
}
