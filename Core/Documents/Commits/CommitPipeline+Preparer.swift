import HearthEngine
import HearthModel
import Synchronization

/// The preparer's thread: large commits are worked out beside the writer, and the reads of old transactions validated.
extension CommitPipeline {
    func prepare() {
        guard let preparer = preparer.withLock({ $0 }) else { return }
        while preparedWaiting.load(ordering: .acquiring) < Limits.commitsPreparedMax {
            guard case .job(let request, _) = preparer.next() else { return }
            prepare(request)
        }
        preparer.pause()
        // The writer may have begun with one just before.
        if preparedWaiting.load(ordering: .acquiring) < Limits.commitsPreparedMax { wakePreparer() }
    }

    func wakePreparer() {
        for request in preparer.withLock({ $0 })?.wake() ?? [] { pushToWriter(request) }
    }

    func prepare(_ request: Request) {
        if request.isAbandoned { return refuse(request, Self.unwanted) }
        if !request.isLarge || request.refusal != nil { return pushToWriter(request) }
        // What goes back is the first of its connection: nothing that it must not overtake waits for these locks.
        if request.isReturning, request.preparations >= Limits.commitPreparationsFreeMax { claimDocuments(of: request) }
        do throws(Status) {
            let (catalog, epoch) = catalog.valueAndEpoch
            let snapshot: any Snapshot
            do throws(Status) {
                snapshot = try store.snapshot()
            } catch {
                // Readers have taken all snapshots. The writer needs none.
                if error.code == .resourceExhausted { return pushToWriter(request) }
                throw error
            }
            defer { snapshot.close() }
            // The writer has the answer.
            if try request.mark?.known(in: snapshot) != nil { return pushToWriter(request) }
            let prepared = try prepare(request, on: snapshot, catalog, epoch)
            request.prepared = prepared
            // What was read is as it was up to here.
            if request.transaction?.version != nil { request.transaction?.version = prepared.version }
        } catch {
            return refuse(request, error)
        }
        preparedWaiting.add(1, ordering: .acquiringAndReleasing)
        request.preparations += 1
        pushToWriter(request)
    }

    /// Takes the locks of what a commit writes to, which was changed before it came to the writer some times: so that others wait
    /// until it has come through, as it waits for them. What rules only look at is others' to change.
    private func claimDocuments(of request: Request) {
        locks.add(request.owner, age: request.owner)
        let keys = Set(request.writes.map { DocumentKey.encode($0.document.path) })
        for key in keys.sorted(by: { UTF8Order.compare($0, $1) < 0 }) {
            // What another one has is waited for at the writer.
            _ = locks.acquire(.document(key), for: request.owner, isCommit: true) {}
        }
    }

    func prepare(
        _ request: Request, on snapshot: any Snapshot, _ catalog: IndexCatalog, _ epoch: UInt64
    ) throws(Status) -> PreparedCommit {
        let version = try Database.version(of: snapshot)
        if locks.isDoomed(request.owner) { throw Self.contention }
        // First, so that a client tries again whose transaction finds something that it hasn't read.
        if let read = request.transaction, let since = read.version,
            try isTouched(read.readSet, since: since, through: version, in: snapshot, .long)
        {
            throw Self.contention
        }
        let latest = commitClock.latest
        try PreparedCommit.judgeFirstWrite(of: request, on: snapshot, catalog: catalog, latest: latest)
        return try PreparedCommit(
            request, on: snapshot, version: version, catalog: catalog, catalogEpoch: epoch, latest: latest,
            clock: clock, isWanted: { !request.isAbandoned })
    }

    /// Whether nothing has changed that a preparation rests on. For the writer.
    func freshness(of prepared: PreparedCommit, earlier sets: [ChangeSet]) -> PreparedCommit.Freshness {
        guard prepared.catalogEpoch == catalog.epoch,
            let since = recent.changes(after: prepared.version, through: commitClock.committed)
        else { return .outdated }
        var most = PreparedCommit.Freshness.fresh
        for set in since + sets {
            for change in set.changes {
                most = max(most, prepared.meaning(of: change.key))
                if most == .outdated { return most }
            }
        }
        return most
    }
}
