import HearthModel
import HearthNetwork
import HearthDocuments

/// Who may see what targets show.
///
/// Rules are asked on the loop, until they have read and decoded as much of stored documents as a loop may do for one judgement:
/// then a worker asks them from the beginning.
extension ListenStream {
    /// Asks whether the stream's client may know what a target shows, and to be told when that may have changed.
    /// - Throws: PERMISSION_DENIED; `WorkMeter.isHeavier`.
    func judge(_ target: ListenSubscription, _ view: ReadView) throws(Status) {
        guard let judgement = judgement(of: target) else { return }
        let reader = StateReader(view, decodedBytesMax: Limits.judgedOnLoopBytesMax)
        try depend(target, on: try judgement(reader), view.version)
    }

    /// What asks rules whether the stream's client may know what a target shows. Used by any thread.
    ///
    /// It returns the documents on which that depends, or fails with PERMISSION_DENIED.
    private typealias Judgement = @Sendable (StateReader) throws(Status) -> [[UInt8]]

    /// - Returns: nil when the stream is over.
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
                // What a document says may decide who reads it.
                return others + keys
            }
        }
    }

    /// Has a worker ask about the state at a version.
    /// - Parameter judged: called on the loop, unless the stream is over by then.
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
                ) { turn in
                    answer(
                        Result { () throws(Status) in
                            let view = try database.view(atVersion: version, under: read)
                            let reader = StateReader(view) { () throws(Status) in
                                turn.giveWay()
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
        // What happened between the judgement and now nobody would tell.
        if try listeners.depend(target, on: dependencies) > version { target.isToBeJudged = true }
    }

    // MARK: Again

    /// Gives a target up that its client may no longer see.
    func judgeAgain(_ target: ListenSubscription) {
        guard targets[target.id] === target, let listeners, !call.isFinished else { return }
        // One that is being loaded was allowed at its version; the answer waits until that is told. One about which a worker asks
        // rules is asked about again.
        target.isToBeJudged = target === loading || target.isAtWorker
        // One that waits to be loaded is judged then.
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

    /// The same by a worker; nothing is told before it has asked.
    private func judgeAgainOnWorker(_ target: ListenSubscription) {
        guard let version = listeners?.seen else { return }
        judgementsPending += 1
        target.isAtWorker = true
        judgeOnWorker(target, at: version) { [self] dependencies in
            // What has changed since is known to concern the target.
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

    /// Judges a target about the state of a moment later than this one, and tells nothing before.
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
