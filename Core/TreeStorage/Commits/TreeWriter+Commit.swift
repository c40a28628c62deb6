import HearthConcurrency
import HearthEngine
import HearthModel
import HearthTree
import Synchronization

/// A group of writes in one transaction. On the writer's thread.
extension TreeWriter {
    /// What becomes of a job of a group.
    private enum Step {
        case done(TreeOutcome)
        case perform
        /// The hash of its condition has to be worked out beside the writer.
        case compare
        /// To judge it takes long, and is done beside the writer.
        case judge
        /// It has to be made in slices.
        case replace
        /// Something of its connection is undecided.
        case wait

        var commit: TreeCommit? { if case .done(let outcome) = self { outcome.commit } else { nil } }
    }

    /// Makes writes in one transaction; those that do not fit into its time are put back.
    /// - Returns: what must be performed after it.
    func commit(_ group: [Entry]) -> [@Sendable (TreeView) -> Void] {
        let (watchers, indexes) = shared.withLock { shared in
            (Watchers(observer: shared.observer, recorder: shared.recorder), shared.indexes)
        }
        var steps = GroupSteps(writer: self, group: group, watchers: watchers, indexes: indexes)
        if group.contains(where: { if case .write = $0.job { true } else { false } }) {
            steps.commit { workOut throws(Status) in
                try store.writeTree { transaction throws(Status) in try workOut(transaction) }
            }
            return steps.jobs
        }
        // Nothing of it is stored.
        return finish(group, group.compactMap { if case .perform = $0.job { .perform } else { nil } }, nil)
    }

    /// Who is called for the commits of a group.
    private struct Watchers {
        let observer: (any TreeObserver)?
        let recorder: (any TreeRecorder)?
    }

    /// A group of writes, and of what is performed between them, on its way.
    private struct GroupSteps: WriteGroup {
        let writer: TreeWriter
        let group: [Entry]
        let watchers: Watchers
        let indexes: TreeIndexes
        /// What becomes of the jobs, as far as they were begun.
        var steps: [Step] = []
        /// What must be performed after the group.
        var jobs: [@Sendable (TreeView) -> Void] = []

        mutating func workOut(in transaction: TreeTransaction) throws(Status) {
            try writer.take(group, &steps, transaction, indexes, watchers)
            // When all were refused there is nothing to sync.
            if let last = steps.lazy.compactMap(\.commit).last?.version {
                try transaction.put(.meta, TreeMeta.version, TreeMeta.encode(last))
                try watchers.recorder?.finish(in: transaction)
            }
        }

        mutating func settle(_ failure: Status?) {
            if failure != nil {
                if steps.count < group.count { steps.append(.wait) }
                writer.store.cancelGraft(ifBegunIn: group.lazy.compactMap(\.request?.replacement).map(\.graft))
            }
            writer.settle(commits: failure == nil ? steps.count { $0.commit != nil } : nil)
            watchers.recorder?.ended(isDurable: failure == nil)
            if failure != nil { watchers.observer?.discard() }
        }

        func notify() { watchers.observer?.publish() }

        mutating func answer(_ failure: Status?) {
            if failure == nil {
                writer.continueBuilding()
                writer.continueSettling()
            }
            jobs = writer.finish(group, steps, failure)
        }
    }

    private func take(
        _ group: [Entry], _ steps: inout [Step], _ transaction: TreeTransaction, _ indexes: TreeIndexes,
        _ watchers: Watchers
    ) throws(Status) {
        let end = MonotonicTime.now.advanced(milliseconds: options.groupMilliseconds)
        var undecided: Set<UInt64> = []
        for entry in group {
            if !steps.isEmpty, MonotonicTime.now >= end { return }
            if undecided.contains(entry.requester.connection) {
                steps.append(.wait)
                continue
            }
            switch entry.job {
            case .write(let request):
                let step = try apply(request, to: transaction, indexes, watchers)
                steps.append(step)
                switch step {
                case .compare, .judge, .replace:
                    if TreeWriteQueue.isOrdered(entry.requester) { undecided.insert(entry.requester.connection) }
                case .done, .perform, .wait: break
                }
            case .perform: steps.append(.perform)
            case .setIndexes, .build, .stage, .settle: steps.append(.wait)
            }
        }
    }

    /// Counts a group, and makes the state after it that of readers.
    /// - Parameter commits: how many writes were made; nil when the group failed.
    private func settle(commits: Int?) {
        shared.withLock { shared in
            shared.statistics.groups += 1
            if let commits {
                shared.statistics.commits += commits
                shared.version = shared.lastVersion
            } else {
                shared.statistics.failedGroups += 1
                shared.changes.discard(after: shared.version)
            }
        }
    }

    /// Answers what is decided, has the rest worked out, and puts back what has not been begun.
    private func finish(
        _ group: [Entry], _ steps: [Step], _ failure: Status?
    ) -> [@Sendable (TreeView) -> Void] {
        var jobs: [@Sendable (TreeView) -> Void] = []
        var waiting: [UInt64: (requester: Requester, jobs: [(job: TreeJob, cost: Int)])] = [:]
        var undecided: [(TreeRequest, Step)] = []
        var rest: [Entry] = []
        for (index, entry) in group.enumerated() {
            let connection = entry.requester.connection
            if waiting[connection] != nil {
                waiting[connection]?.jobs.append((entry.job, entry.cost))
                continue
            }
            guard index < steps.count else {
                rest.append(entry)
                continue
            }
            switch (entry.job, steps[index]) {
            // Whoever waits for a job is answered, also beside a write that failed.
            case (.perform(let job), _): jobs.append(job)
            case (.write(let request), .compare) where failure == nil,
                (.write(let request), .judge) where failure == nil,
                (.write(let request), .replace) where failure == nil:
                undecided.append((request, steps[index]))
                if TreeWriteQueue.isOrdered(entry.requester) { waiting[connection] = (entry.requester, []) }
            case (.write(let request), .done(let outcome)) where failure == nil: decide(request, outcome)
            case (.write(let request), _):
                decide(request, .failed(Status(.unavailable, failure?.message ?? "The write was not made.")))
            case (.setIndexes, _), (.build, _), (.stage, _), (.settle, _): rest.append(entry)
            }
        }
        shared.withLock { shared in
            for (requester, jobs) in waiting.values { shared.queue.hold(requester, before: jobs) }
            shared.queue.putBack(rest)
        }
        for (request, step) in undecided {
            switch step {
            case .compare: compare(request, judging: false)
            case .judge: compare(request, judging: true)
            case .done, .perform, .replace, .wait: replace(request)
            }
        }
        return jobs
    }

    /// - Throws: when the store fails, which fails the group; what is wrong with the write is its outcome.
    private func apply(
        _ request: TreeRequest, to transaction: TreeTransaction, _ indexes: TreeIndexes, _ watchers: Watchers
    ) throws(Status) -> Step {
        let version = nextVersion()
        let view = TreeView(transaction, version: version, indexes: indexes, isOwner: false)
        let mutation = TreeMutation(transaction, view)
        let changes: [TreeChange]
        var wide = request.replacement == nil ? shared.withLock { $0.undecided.wide } : nil
        var inShadow: [TreeChange] = []
        do throws(Status) {
            if isToBeStaged(request, indexes) { return .replace }
            switch try judge(request, view) {
            case .ready(let resolved): changes = resolved
            case .refused(let outcome): return .done(outcome)
            case .unknown: return .compare
            case .unjudged: return .judge
            }
            if request.replacement == nil, !changes.isEmpty,
                try mutation.hasMany(
                    at: changes, nodes: options.replacementNodesMin, bytes: options.replacementBytesMin)
            {
                return .replace
            }
            if let inProgress = wide {
                if let shadowed = inProgress.inShadow(changes) {
                    inShadow = shadowed
                } else {
                    inProgress.abandon()
                    shared.withLock { $0.undecided.wide = nil }
                    wide = nil
                }
            }
        } catch {
            // A damaged record is the trouble of those who write there, not of the group.
            if error.code == .unavailable { throw error }
            return .done(.failed(error))
        }
        // From here on half of the write may be put: every failure undoes the group.
        var isChanged = true
        if !changes.isEmpty {
            if request.write.isRecorded {
                try watchers.recorder?.record(
                    changes, version: version, by: { request.write.author?() ?? [] }, before: view, in: transaction)
            }
            watchers.observer?.willChange(changes, before: view)
        }
        if let replacement = request.replacement {
            try replacement.wide?.update(replacement.changes, to: changes, in: transaction, view)
            try mutation.apply(replacement, in: transaction)
            shared.withLock { $0.undecided.wide = nil }
        } else if let wide {
            isChanged = try wide.make(changes, inShadow: inShadow, in: transaction, view, mutation)
        } else {
            isChanged = try mutation.apply(changes)
        }
        for change in request.write.journal { try change.apply(to: transaction) }
        try request.write.edit?(transaction)
        let commit = TreeCommit(
            version: version, changes: changes, isNoChange: !isChanged, base: request.write.base)
        if !changes.isEmpty {
            shared.withLock { $0.changes.note(commit, isCertain: request.replacement == nil) }
            watchers.observer?.prepare(commit, after: view)
        }
        return .done(.committed(commit))
    }

    private func nextVersion() -> Int64 {
        let now = clock.now().microseconds
        return shared.withLock { shared in
            shared.lastVersion = max(now, shared.lastVersion + 1)
            return shared.lastVersion
        }
    }

    /// Whether the records of a large write have to be staged, or staged anew.
    private func isToBeStaged(_ request: TreeRequest, _ indexes: TreeIndexes) -> Bool {
        if request.failure != nil || request.comparison?.isEqual == false { return false }
        guard let replacement = request.replacement else { return request.isLarge }
        if replacement.wide?.isAbandoned == true { return true }
        if replacement.indexIDs != indexes.kept.map(\.id) { return true }
        if replacement.basedOn == nil { return false }
        return replacement.isOutdated(shared.withLock { $0.changes })
    }

    // MARK: Judgement

    /// Attempts to judge a write beside the writer before it is judged here.
    private static let attemptsBesideMin = 2

    private enum Judgement {
        case ready([TreeChange])
        case refused(TreeOutcome)
        /// The condition can't be judged here.
        case unknown
        /// The guard can't be asked here.
        case unjudged
    }

    private func judge(_ request: TreeRequest, _ view: TreeView) throws(Status) -> Judgement {
        let write = request.write
        if let failure = request.failure { return .refused(.failed(failure)) }
        if let condition = write.condition, condition.reveals || write.guard == nil {
            guard let holds = try holds(condition, request, view) else { return .unknown }
            if !holds { return .refused(.stale) }
        }
        let changes =
            if let replacement = request.replacement {
                try replacement.changes(of: write, on: view)
            } else {
                try write.resolvedChanges(on: view)
            }
        if let treeGuard = write.guard {
            if try !isAllowed(request, changes, by: treeGuard, view) {
                // What it reads is written all the time: the client gets an error, and tries again.
                let isLast = request.judgement != nil && request.attempts >= Limits.treeAttemptsMax
                return isLast ? .refused(.failed(Self.tooFast)) : .unjudged
            }
            if let condition = write.condition, !condition.reveals {
                guard let holds = try holds(condition, request, view) else { return .unknown }
                if !holds { return .refused(.stale) }
            }
        }
        return .ready(changes)
    }

    /// - Returns: false when the guard is to be asked beside the writer.
    /// - Throws: why the write may not be made.
    private func isAllowed(
        _ request: TreeRequest, _ changes: [TreeChange], by treeGuard: any TreeGuard, _ view: TreeView
    ) throws(Status) -> Bool {
        if let judgement = request.judgement {
            let recent = shared.withLock { $0.changes }
            if try judgement.holds(for: treeGuard, on: view, recent) { return true }
            // What it looks at is written while it is judged, again and again: here nobody comes between.
            if request.attempts < Self.attemptsBesideMin || changes.count > Limits.treeJudgedAgainChangesMax {
                return false
            }
        }
        let stepsMax = request.judgement == nil ? options.judgeStepsMax : options.judgeAgainStepsMax
        do throws(Status) {
            let after = TreeOverlay(base: view, changes: changes)
            try treeGuard.judge(
                changes, before: view, after: after, now: request.write.nowMilliseconds,
                stepsMax: stepsMax)
            return true
        } catch {
            if error.code == .resourceExhausted { return false }
            throw error
        }
    }

    /// Whether a location has the hash that a condition asks for; nil when that is to be worked out beside the writer.
    ///
    /// What didn't hold at a moment after the write was submitted has failed, whatever has happened since: the write
    /// may be taken for one that came at that moment.
    private func holds(
        _ condition: TreeWrite.Condition, _ request: TreeRequest, _ view: TreeView
    ) throws(Status) -> Bool? {
        if let comparison = request.comparison {
            if !comparison.isEqual { return false }
            switch shared.withLock({ $0.changes.since(comparison.version, at: condition.path) }) {
            case .untouched: return true
            case .changed: return false
            // A location above it is written all the time: the client gets an error, and tries again.
            case .unknown: return request.attempts >= Limits.treeAttemptsMax ? false : nil
            }
        }
        if let kept = shared.withLock({ $0.hashes.hashes(of: condition.path, $0.changes) }) {
            return kept.meet(condition)
        }
        do throws(Status) {
            return try view.hashes(at: condition.path, sizeBytesMax: options.compareBytesMax).meet(condition)
        } catch {
            if error.code == .resourceExhausted { return nil }
            throw error
        }
    }
}
