import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// What a target shows at first, or anew.
extension ListenStream {
    /// Sends what a target's client doesn't know as of one version, then a boundary.
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
        // The others come to the same version first.
        switch flush({ [self] in begin(target, at: version, knowledge, isNew: isNew) }) {
        case .told: begin(target, at: version, knowledge, isNew: isNew)
        case .underWay: break
        case .deferred:
            // It is loaded at the version that they can be told of then.
            target.since = .max
            deferredLoad = { [self] in load(target, knowledge, isNew: isNew) }
        }
    }

    /// Goes on with a load that waited for judgements.
    func beginDeferredLoad() {
        guard judgementsPending == 0, let load = deferredLoad else { return }
        deferredLoad = nil
        load()
    }

    func begin(_ target: ListenSubscription, at version: Int64, _ knowledge: Knowledge, isNew: Bool) {
        guard !call.isFinished, let database = listeners?.database else { return }
        do throws(Status) {
            // Only now: a client takes a boundary to speak for every target that it knows to be added.
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

    /// - Returns: the state that a target is to show, when rules have allowed that.
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

    /// Sends what a target's client doesn't know of a state that it may see.
    private func show(_ target: ListenSubscription, _ view: ReadView, of database: Database, _ knowledge: Knowledge) {
        let version = view.version
        do throws(Status) {
            // What waits for the end holds the time and not the view, which keeps a snapshot open.
            let readTime = view.readTime
            switch knowledge {
            case .none: break
            case .version(let known, let isTime, let expectedCount) where isTime || known <= version:
                if let past = try past(min(known, version), database, view) {
                    return resume(target, at: version, view, since: past, expectedCount)
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

    /// The state that a client knows; nil when the history doesn't go back so far.
    func past(_ version: Int64, _ database: Database, _ view: ReadView) throws(Status) -> ReadView? {
        guard try view.reaches(version) else { return nil }
        return try database.view(atVersion: version)
    }

    /// Where what the client has of a query's window is noted, on the client's account.
    private func window(of shared: SharedQuery) -> ListenWindow? {
        shared.live.isWindow ? ListenWindow(service.memory.windows.reservation(for: call.requester)) : nil
    }

    private func window(of target: ListenSubscription) -> ListenWindow? {
        if case .query(let shared) = target.kind { window(of: shared) } else { nil }
    }

    func resume(
        _ target: ListenSubscription, at version: Int64, _ view: ReadView, since past: ReadView, _ expectedCount: Int?
    ) {
        guard let database = listeners?.database else { return }
        let readTime = view.readTime
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
            // A call that is over has let go of what holds it, and must not be given more.
            if call.isFinished { return }
            call.onWritable = { [self] in
                hasCapacity = true
                proceed()
            }
            // Nobody noted here when the client took something again; what is sent next shows whether it still does.
            hasCapacity = true
            // A query that asks for too much would do so again; what else fails may succeed on a new stream.
            if status.code == .resourceExhausted { return refused(target, status) }
            if status.code != .ok { return end(Status(.unavailable, status.message)) }
            completion()
        }
        sending = messages
        messages.start()
    }

    /// Gives a target up whose result can't be had, and goes on with the others.
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

    /// Sends the boundary that waits for targets to be complete, when they are. Documents that are asked for one by one, in
    /// requests that have come already, get one together: a client goes over all its targets at each.
    func payBoundary() {
        guard !call.isFinished, !isLoading, !isFlushing, reloadsPending == 0, let owed = owedBoundary else { return }
        if hasCapacity, case .add(let message, _)? = jobs.first, message.documents != nil { return }
        boundary(version: owed.version, owed.readTime)
    }

    func loaded(_ target: ListenSubscription, _ version: Int64, _ readTime: Timestamp) {
        send(
            TargetChangeMessage(
                targetChangeType: .current, targetIds: [target.id], resumeToken: token(version),
                readTime: TimestampMessage(readTime)))
        if target.once { ending.append(target) }
        owedBoundary = (version, readTime)
        finishLoad()
        if target.isToBeJudged { judgeWhenSettled(target) }
        proceed()
        // It goes out now even when the client takes nothing else.
        payBoundary()
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
