import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// Loads the initial results of a target, or all of them again.
extension ListenStream {
    /// Sends what a target's client does not know as of one version, then a boundary.
    func load(_ target: ListenSubscription, _ knowledge: Knowledge, isNew: Bool = false) {
        isLoading = true
        loading = target
        target.since = .max
        target.window = nil
        listeners?.settle { [weak self] version in self?.load(target, at: version, knowledge, isNew: isNew) }
    }

    func load(_ target: ListenSubscription, at version: Int64, _ knowledge: Knowledge, isNew: Bool) {
        guard !call.isFinished, listeners != nil else { return }
        target.since = version
        // The other targets are brought to the same version first.
        switch flush({ [self] in begin(target, at: version, knowledge, isNew: isNew) }) {
        case .upToDate: begin(target, at: version, knowledge, isNew: isNew)
        case .underWay: break
        case .deferred:
            // The target is loaded at the version that can be sent then.
            target.since = .max
            deferredLoad = { [self] in load(target, knowledge, isNew: isNew) }
        }
    }

    /// Continues a load that waited for judgements.
    func beginDeferredLoad() {
        guard judgementsPending == 0, let load = deferredLoad else { return }
        deferredLoad = nil
        load()
    }

    func begin(_ target: ListenSubscription, at version: Int64, _ knowledge: Knowledge, isNew: Bool) {
        guard !call.isFinished, let database = listeners?.database else { return }
        do throws(Status) {
            // Not earlier: a client applies a boundary to every target that it knows to be added.
            if isNew { send(TargetChangeMessage(targetChangeType: .add, targetIds: [target.id])) }
            let view = try database.view(atVersion: version)
            do throws(Status) {
                try judge(target, view)
            } catch WorkMeter.isHeavier {
                return judgeOnWorker(target, at: version) { [self] dependencies in
                    guard let view = allowed(target, dependencies, at: version) else { return }
                    show(target, view, of: database, knowledge)
                }
            } catch {
                if error.code != .permissionDenied, error != ListenSubscription.noMemory { throw error }
                return refused(target, error)
            }
            show(target, view, of: database, knowledge)
        } catch {
            end(error)
        }
    }

    /// - Returns: the state that a target shows, when rules have allowed it.
    private func allowed(
        _ target: ListenSubscription, _ dependencies: Result<[[UInt8]], Status>, at version: Int64
    ) -> ReadView? {
        do throws(Status) {
            try depend(target, on: try dependencies.get(), version)
            return try listeners?.database.view(atVersion: version)
        } catch {
            if error.code == .permissionDenied || error.code == .resourceExhausted {
                refused(target, error)
            } else {
                end(error)
            }
            return nil
        }
    }

    /// Sends what a target's client does not know of a state that it may see.
    private func show(_ target: ListenSubscription, _ view: ReadView, of database: Database, _ knowledge: Knowledge) {
        let version = view.version
        do throws(Status) {
            // The waiting closure holds the time and not the view, because a view keeps a snapshot open.
            let readTime = try view.latestReadTime()
            switch knowledge {
            case .none: break
            case .version(let known, let isTime, let expectedCount) where isTime || known <= version:
                if let past = try past(min(known, version), database, view) {
                    return resume(target, at: version, readTime, view, since: past, expectedCount)
                }
                fallthrough
            case .unknown, .version: send(TargetChangeMessage(targetChangeType: .reset, targetIds: [target.id]))
            }
            switch target.kind {
            case .documents(let keys):
                if keys.count == 1 {
                    try send(view.document(key: keys[0]), keys[0], target, readTime)
                    return loaded(target, version, readTime)
                }
                run(DocumentsLoad(keys, view, of: database, target.id, format: call.format), of: target) { [self] in
                    loaded(target, version, readTime)
                }
            case .query(let shared):
                let source: ListenLoad
                do throws(Status) {
                    source = try ListenLoad(
                        shared.live, view, of: database, target.id, target.projection,
                        requireIndexes: service.options.requireIndexes,
                        format: call.format, cancellation: call.cancellation,
                        memory: service.memory.sorting.reservation(for: call.requester), window: window(of: shared))
                } catch {
                    return refused(target, error)
                }
                run(source, of: target) { [self] in
                    target.window = source.window
                    target.window?.version = version
                    let count = ResultCounts.Entry(version: version, count: source.count)
                    service.resultCounts.note(count, database, shared.digest)
                    loaded(target, version, readTime)
                }
            }
        } catch {
            end(error)
        }
    }

    /// The state that a client knows; nil when the history does not go back that far.
    func past(_ version: Int64, _ database: Database, _ view: ReadView) throws(Status) -> ReadView? {
        guard try view.reaches(version) else { return nil }
        return try database.view(atVersion: version)
    }

    /// Records the client's version of a query's window, on the client's account.
    private func window(of shared: SharedQuery) -> ListenWindow? {
        shared.live.isWindow ? ListenWindow(service.memory.windows.reservation(for: call.requester)) : nil
    }

    private func window(of target: ListenSubscription) -> ListenWindow? {
        if case .query(let shared) = target.kind { window(of: shared) } else { nil }
    }

    func resume(
        _ target: ListenSubscription, at version: Int64, _ readTime: Timestamp, _ view: ReadView, since past: ReadView,
        _ expectedCount: Int?
    ) {
        guard let database = listeners?.database else { return }
        let source = ListenResume(
            target, view, since: past, database, service.resultCounts, expectedCount: expectedCount,
            isJudged: isJudged, format: call.format, cancellation: call.cancellation,
            memory: service.memory.sorting.reservation(for: call.requester), window: window(of: target))
        run(source, of: target) { [self] in
            if source.isTooOld { return load(target, .unknown) }
            target.window = source.window
            target.window?.version = version
            loaded(target, version, readTime)
        }
    }

    func run(_ source: any MessageSource, of target: ListenSubscription, completion: @escaping () -> Void) {
        let messages = MessageStream(source, to: call, pool: service.pool, reads: service.longReads) { [self] status in
            sending = nil
            // A call that has ended released its references, and must not get new ones.
            if call.isFinished { return }
            call.onWritable = { [self] in
                hasCapacity = true
                proceed()
            }
            // The stream was not notified when the client had capacity again. The next message shows whether it has.
            hasCapacity = true
            // A query that needs too many resources would fail again. Other errors may disappear on a new stream.
            if status.code == .resourceExhausted { return refused(target, status) }
            if status.code != .ok { return end(Status(.unavailable, status.message)) }
            completion()
        }
        sending = messages
        messages.start()
    }

    /// Removes a target whose result is not available, and continues with the others.
    func refused(_ target: ListenSubscription, _ status: Status) {
        remove(target.id, cause: status)
        finishLoad()
        proceed()
    }

    func finishLoad() {
        isLoading = false
        loading = nil
        guard isReloading else { return }
        isReloading = false
        reloadsPending -= 1
    }

    /// Sends the pending boundary when all targets are complete. Documents that are requested one by one, in requests
    /// that have already arrived, get one boundary together: a client iterates over all its targets at each boundary.
    func sendPendingBoundary() {
        guard !call.isFinished, !isLoading, !isFlushing, reloadsPending == 0, let owed = pendingBoundary else { return }
        if hasCapacity, case .add(let message, _)? = jobs.first, message.documents != nil { return }
        boundary(version: owed.version, owed.readTime)
    }

    func loaded(_ target: ListenSubscription, _ version: Int64, _ readTime: Timestamp) {
        send(
            TargetChangeMessage(
                targetChangeType: .current, targetIds: [target.id], resumeToken: token(version),
                readTime: TimestampMessage(readTime)))
        if target.once { ending.append(target) }
        pendingBoundary = (version, readTime)
        finishLoad()
        if target.isToBeJudged { judgeWhenSettled(target) }
        proceed()
        // It is sent now, even when the client takes nothing else.
        sendPendingBoundary()
    }

    func send(
        _ document: StoredDocument?, _ key: [UInt8], _ target: ListenSubscription, _ readTime: Timestamp
    ) throws(Status) {
        if let document {
            try sendChange(document, key, [target.id], removed: [], target.projection)
        } else {
            send(
                ListenResponse(
                    documentDelete: DocumentDeleteMessage(
                        document: try name(key), removedTargetIds: [target.id], readTime: TimestampMessage(readTime))))
        }
    }
}
