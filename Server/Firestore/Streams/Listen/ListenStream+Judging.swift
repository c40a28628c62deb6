import HearthModel
import HearthNetwork
import HearthDocuments

/// Decides who may see the results of targets.
///
/// Rules run on the loop until they have read and decoded as much of stored documents as a loop may do for one
/// judgement. Then a worker evaluates them from the beginning.
extension ListenStream {
    /// Evaluates rules for a target, and judges it again when the decision may have changed.
    /// - Throws: PERMISSION_DENIED; `WorkMeter.isHeavier`.
    func judge(_ target: ListenSubscription, _ view: ReadView) throws(Status) {
        guard let judgement = judgement(of: target) else { return }
        let reader = StateReader(view, decodedBytesMax: Limits.judgedOnLoopBytesMax)
        try depend(target, on: try judgement(reader), view.version)
    }

    /// Evaluates rules about a target of the stream's client. Used by any thread.
    ///
    /// It returns the documents on which the decision depends, or fails with PERMISSION_DENIED.
    private typealias Judgement = @Sendable (StateReader) throws(Status) -> [[UInt8]]

    /// - Returns: nil when the stream has ended.
    private func judgement(of target: ListenSubscription) -> Judgement? {
        guard let name = listeners?.database.name else { return nil }
        let (access, identity) = (service.access, call.identity)
        switch target.kind {
        case .query(let shared):
            let query = shared.live.query.query
            return { reader throws(Status) in
                try access.list(query, identity, reader).map { DocumentKey.encode($0) }
            }
        case .documents(let keys):
            return { reader throws(Status) in
                guard access.isJudged(identity, name) else { return [] }
                let paths = keys.compactMap { DocumentKey.decode($0) }
                let others = try access.get(paths, identity, name, reader).map { DocumentKey.encode($0) }
                // The contents of a document may decide who reads it.
                return others + keys
            }
        }
    }

    /// Has a worker judge the state at a version.
    /// - Parameter judged: called on the loop, unless the stream has ended by then.
    func judgeOnWorker(
        _ target: ListenSubscription, at version: Int64,
        _ judged: @escaping @Sendable (Result<[[UInt8]], Status>) -> Void
    ) {
        guard let database = listeners?.database, let judgement = judgement(of: target) else { return }
        let (pool, requester, cancellation) = (service.pool, call.requester, call.cancellation)
        let answer: @Sendable (Result<[[UInt8]], Status>) -> Void = { [call] result in
            call.onLoop { if !call.isFinished { judged(result) } }
        }
        service.longReads.whenFree(for: requester, cancellation: cancellation) { read in
            switch read {
            case .failure(let status): answer(.failure(status))
            case .success(let read):
                pool.runInSlices(
                    .long, for: requester, cancellation: cancellation, refused: { answer(.failure($0)) }
                ) { slice in
                    answer(
                        Result { () throws(Status) in
                            let view = try database.view(atVersion: version, under: read)
                            let reader = StateReader(view) { () throws(Status) in
                                slice.giveWay()
                                try cancellation.check()
                            }
                            return try judgement(reader)
                        })
                }
            }
        }
    }

    func depend(_ target: ListenSubscription, on dependencies: [[UInt8]], _ version: Int64) throws(Status) {
        guard let listeners else { return }
        if dependencies == target.dependencies { return }
        try target.hold(dependencies: dependencies)
        // Nothing else reports changes between the judgement and now.
        if try listeners.depend(target, on: dependencies) > version { target.isToBeJudged = true }
    }

    // MARK: Again

    /// Removes a target that its client may no longer see.
    func judgeAgain(_ target: ListenSubscription) {
        guard targets[target.id] === target, let listeners, !call.isFinished else { return }
        // A target that is being loaded was allowed at its version; the decision waits until the load is sent. A target
        // that a worker judges is judged again.
        target.isToBeJudged = target === loading || target.isAtWorker
        // A target that waits to be loaded is judged at that time.
        if target.isToBeJudged || target.since == .max { return }
        guard let judgement = judgement(of: target) else { return }
        do throws(Status) {
            let key = Judgements.Key(identity: judgedIdentity, subject: target.subject)
            try judged(target, try listeners.judgement(key, judgement), at: listeners.seen)
        } catch WorkMeter.isHeavier {
            judgeAgainOnWorker(target)
        } catch {
            giveUp(target, error)
        }
    }

    private func judged(_ target: ListenSubscription, _ dependencies: [[UInt8]], at version: Int64) throws(Status) {
        try depend(target, on: dependencies, version)
        if target.isToBeJudged { judgeWhenSettled(target) }
    }

    private func giveUp(_ target: ListenSubscription, _ status: Status) {
        if status.code == .permissionDenied || status == ListenSubscription.noMemory {
            return remove(target.id, cause: status)
        }
        end(status.code == .resourceExhausted ? status : Status(.unavailable, status.message))
    }

    /// Like `judgeAgain`, on a worker. Nothing is sent until the decision.
    private func judgeAgainOnWorker(_ target: ListenSubscription) {
        guard let version = listeners?.seen else { return }
        judgementsPending += 1
        target.isAtWorker = true
        judgeOnWorker(target, at: version) { [self] dependencies in
            // All changes up to this version are known to concern the target.
            listeners?.settle { [weak self] _ in
                guard let self, !self.call.isFinished else { return }
                target.isAtWorker = false
                if self.targets[target.id] === target {
                    do throws(Status) {
                        try self.judged(target, try dependencies.get(), at: version)
                    } catch {
                        self.giveUp(target, error)
                    }
                }
                self.judgementsPending -= 1
                self.listeners?.proceedLater(self)
            }
        }
    }

    /// Judges a target at a later state, and sends nothing before.
    func judgeWhenSettled(_ target: ListenSubscription) {
        judgementsPending += 1
        listeners?.settle { [weak self] _ in
            guard let self else { return }
            self.judgementsPending -= 1
            self.judgeAgain(target)
            self.listeners?.proceedLater(self)
        }
    }
}
