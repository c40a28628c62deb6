import HearthCache
import HearthModel

/// The path of the user's writes through the engine.
extension SyncEngine {
    /// - Parameters:
    ///   - time: of the call; nil for now.
    ///   - entry: of the write in the journal.
    ///   - completion: receives the server's answer, or the reason why the write is not stored.
    func write(
        _ mutations: [Mutation], at time: Timestamp? = nil, _ entry: WriteJournal.Entry? = nil,
        completion: @escaping (Status?) -> Void
    ) throws(Status) {
        let batchID: Int
        let changed: [ResourcePath: ClientDocument]
        do throws(Status) {
            (batchID, changed) = try localStore.write(mutations, at: time, journalNumber: entry?.number)
        } catch {
            if let entry { withdraw(entry) }
            // Nothing was stored and the state is unchanged: only this write fails.
            if error.isPassing { return completion(error) }
            throw error
        }
        writeCompletions[user, default: [:]][batchID] = completion
        pendingWrites.add(1)
        // From here on a failure completes this write together with all others.
        attempt { () throws(Status) in try emit(changed) }
        remoteStore.fillWritePipeline()
    }

    /// The write of a call failed: no later run may make it.
    func withdraw(_ entry: WriteJournal.Entry) {
        do throws(Status) { try localStore.persistence.journal?.withdraw(entry) } catch {
            onWarning("A write that has failed remains in the cache, and the next run makes it: \(error)")
        }
    }

    func acknowledge(_ result: BatchResult) throws(Status) {
        writeCompletions[user]?.removeValue(forKey: result.batch.id)?(nil)
        pause.writes.append(.made(result, of: user))
        try settleWrites()
    }

    func reject(_ batchID: Int, _ error: Status) throws(Status) {
        pause.writes.append(.refused(batchID: batchID, error, of: user))
        try settleWrites()
    }

    /// - Parameter changed: the documents without the write.
    func completeRefused(
        _ batchID: Int, _ error: Status, _ changed: [ResourcePath: ClientDocument], of writer: ClientUser
    ) {
        // Batches of an earlier run have no completion.
        if writeCompletions[writer]?[batchID] == nil {
            let paths = changed.keys.map(\.string).sorted().joined(separator: ", ")
            onWarning("A write of an earlier run failed and was reverted: \(error) Documents: \(paths)")
        }
        writeCompletions[writer]?.removeValue(forKey: batchID)?(error)
        completeWaiters(batchID)
    }

    /// Runs when no answer has arrived for a second.
    func settleOverlaysLater() {
        overlayTimer?.cancel()
        overlayTimer = nil
        guard localStore.hasOverlayDebts else { return }
        overlayTimer = remoteStore.queue.schedule(.overlays, afterSeconds: 1) { [unowned self] in
            overlayTimer = nil
            attemptQuietly { () throws(Status) in try emit(try localStore.settleOverlays()) }
        }
    }

    /// The outcome of a batch is in the cache, and the batch is deleted.
    func completeWaiters(_ batchID: Int) {
        for waiter in pendingWriteWaiters.removeValue(forKey: batchID) ?? [] { waiter(nil) }
    }

    /// This client answers none of the waiting calls any more.
    func failWrites(_ error: Status) {
        let completions = writeCompletions.values.flatMap(\.values) + pendingWriteWaiters.values.joined()
        writeCompletions = [:]
        pendingWriteWaiters = [:]
        for completion in completions { completion(error) }
    }

    /// Completes when all writes that are pending now have an answer.
    func waitForPendingWrites(completion: @escaping (Status?) -> Void) throws(Status) {
        let batchID = try localStore.highestUnacknowledgedBatchID()
        if batchID == MutationBatch.unknownID { return completion(nil) }
        pendingWriteWaiters[batchID, default: []].append(completion)
    }

    /// - Parameters:
    ///   - onCount: receives the number of the present user's pending batches, now and after each change.
    ///   - onEnd: the cache failed, or nil when the client ends. Nothing follows.
    func observePendingWrites(
        _ id: ObjectIdentifier, onCount: @escaping (Int) -> Void, onEnd: @escaping (Status?) -> Void
    ) throws(Status) {
        if !pendingWrites.isObserved { pendingWrites.set(try localStore.pendingBatchCount()) }
        pendingWrites.observe(id, onCount: onCount, onEnd: onEnd)
    }

    /// Counts again, after a change of user or after the cache could not be read.
    func recountPendingWrites() throws(Status) {
        if pendingWrites.isObserved { pendingWrites.set(try localStore.pendingBatchCount()) }
    }

    func changeUser(_ newUser: ClientUser) throws(Status) {
        if newUser != user {
            user = newUser
            let waiters = pendingWriteWaiters.values.joined()
            pendingWriteWaiters = [:]
            for waiter in waiters {
                waiter(Status(.cancelled, "The user changed while this waited for pending writes."))
            }
            do throws(Status) {
                let changed = try localStore.changeUser(newUser)
                try recountPendingWrites()
                try emit(changed)
            } catch {
                // Views may show the former user's writes until the cache can be read again.
                pause.hasStaleViews = true
                take(error)
            }
        }
        remoteStore.restartForNewCredentials()
    }
}
