import HearthModel

/// The user's writes on their way through the engine.
extension SyncEngine {
    func write(_ mutations: [Mutation], completion: @escaping (Status?) -> Void) throws(Status) {
        let batchID: Int
        let changed: [ResourcePath: ClientDocument]
        do throws(Status) { (batchID, changed) = try localStore.write(mutations) } catch {
            // Nothing was written, and everything is as it was: only this write fails.
            if error.isPassing { return completion(error) }
            throw error
        }
        writeCompletions[user, default: [:]][batchID] = completion
        // From here on a failure completes the write with all others.
        attempt { () throws(Status) in try emit(changed) }
        remoteStore.fillWritePipeline()
    }

    func acknowledge(_ result: BatchResult) throws(Status) {
        complete(result.batch.id, nil)
        pause.writes.append(.made(result))
        try settleWrites()
    }

    func reject(_ batchID: Int, _ error: Status) throws(Status) {
        pause.writes.append(.refused(batchID: batchID, error))
        try settleWrites()
    }

    /// - Parameter changed: the documents as they are without the write.
    func completeRefused(_ batchID: Int, _ error: Status, _ changed: [ResourcePath: ClientDocument]) {
        if writeCompletions[user]?[batchID] == nil {
            let paths = changed.keys.map(\.text).sorted().joined(separator: ", ")
            onWarning("A write of an earlier run was refused and undone: \(error) Documents: \(paths)")
        }
        complete(batchID, error)
    }

    private func complete(_ batchID: Int, _ error: Status?) {
        // Batches of an earlier run have no completion.
        writeCompletions[user]?.removeValue(forKey: batchID)?(error)
        for waiter in pendingWriteWaiters.removeValue(forKey: batchID) ?? [] { waiter(nil) }
    }

    /// Nothing of what waits is answered by this client any more.
    func failWrites(_ error: Status) {
        let completions = writeCompletions.values.flatMap(\.values) + pendingWriteWaiters.values.joined()
        writeCompletions = [:]
        pendingWriteWaiters = [:]
        for completion in completions { completion(error) }
    }

    /// Completes when everything that is pending now was answered.
    func waitForPendingWrites(completion: @escaping (Status?) -> Void) throws(Status) {
        let batchID = try localStore.highestUnacknowledgedBatchID()
        if batchID == MutationBatch.unknownID { return completion(nil) }
        pendingWriteWaiters[batchID, default: []].append(completion)
    }

    func changeUser(_ newUser: ClientUser) throws(Status) {
        if pause.isOn {
            // What waits is of the user's writes.
            pause.nextUser = newUser
            return
        }
        if newUser != user {
            user = newUser
            let waiters = pendingWriteWaiters.values.joined()
            pendingWriteWaiters = [:]
            for waiter in waiters {
                waiter(Status(.cancelled, "The user changed while this waited for pending writes."))
            }
            try emit(try localStore.changeUser(newUser))
        }
        remoteStore.restartForNewCredentials()
    }
}
