import HearthConcurrency
import HearthEngine
import HearthModel
import Synchronization

/// The deletion of what makes commits happen once, when it is old: see `OnceAnswers` and `OnceLedger`.
extension Database {
    /// Before this time, in microseconds since 1970, it is old.
    private var onceHorizon: Int64 { elapsed.microseconds - Int64(Limits.onceSeconds) * 1_000_000 }

    /// Deletes answers to commits with an id that were made `Limits.onceSeconds` ago, a bounded number at a time.
    /// Does nothing while another call is under way.
    /// - Parameter completion: called with whether there is more to delete; on the writer's thread, or at once.
    package func deleteOldOnceAnswers(
        limit: Int = Limits.onceDeletedMax, completion: @escaping @Sendable (Result<Bool, Status>) -> Void
    ) {
        if areOnceAnswersInWork.exchange(true, ordering: .acquiringAndReleasing) { return completion(.success(false)) }
        let end: @Sendable (Result<Bool, Status>) -> Void = { [self] result in
            areOnceAnswersInWork.store(false, ordering: .releasing)
            completion(result)
        }
        let horizon = onceHorizon
        do throws(Status) {
            let snapshot = try store.snapshot()
            defer { snapshot.close() }
            guard try OnceAnswers.hasOld(before: horizon, in: snapshot) else { return end(.success(false)) }
        } catch {
            return end(.failure(error))
        }
        let more = SharedBox(Mutex(false))
        pipeline.perform(
            { transaction throws(Status) in
                let isMore = try OnceAnswers.deleteOld(before: horizon, limit: limit, in: transaction)
                more.value.withLock { $0 = isMore }
            }, completion: { end($0.map { more.value.withLock { $0 } }) })
    }

    /// Deletes the documents of a top-level collection, the ledger, that were created `Limits.onceSeconds` ago, without
    /// events; a bounded number at a time. Does nothing while another call is under way.
    /// - Parameters:
    ///   - collection: empty for none.
    ///   - completion: called with whether there is more to do; on the writer's thread, or at once.
    package func deleteOldLedgerDocuments(
        of collection: String, limit: Int = Limits.onceDeletedMax,
        completion: @escaping @Sendable (Result<Bool, Status>) -> Void
    ) {
        if isLedgerInWork.exchange(true, ordering: .acquiringAndReleasing) { return completion(.success(false)) }
        let end: @Sendable (Result<Bool, Status>) -> Void = { [self] result in
            isLedgerInWork.store(false, ordering: .releasing)
            completion(result)
        }
        do throws(Status) {
            try ledgerStep(collection, limit: limit, end)
        } catch {
            end(.failure(error))
        }
    }

    private func ledgerStep(
        _ collection: String, limit: Int, _ end: @escaping @Sendable (Result<Bool, Status>) -> Void
    ) throws(Status) {
        let horizon = onceHorizon
        let snapshot = try store.snapshot()
        defer { snapshot.close() }
        guard let state = try OnceLedger.state(in: snapshot) else {
            guard !collection.isEmpty,
                try snapshot.count(.documents, KeyRange(prefix: OnceLedger.prefix(of: collection)), limit: 1) > 0
            else { return end(.success(false)) }
            return changeLedger(end) { transaction throws(Status) in
                try OnceLedger.begin(collection, in: transaction)
            }
        }
        if state.collection != collection {
            return changeLedger(end) { transaction throws(Status) in
                _ = try OnceLedger.forget(limit: limit, in: transaction)
            }
        }
        if !state.isComplete {
            return changeLedger(end) { transaction throws(Status) in
                // The database may have been cleared since.
                guard let state = try OnceLedger.state(in: transaction), !state.isComplete else { return }
                try OnceLedger.list(state, limit: limit, in: transaction)
            }
        }
        let old = try OnceLedger.old(before: horizon, limit: limit, in: snapshot)
        if old.isEmpty { return end(.success(false)) }
        try deleteLedgerDocuments(old, isMore: old.count == limit, in: snapshot, end)
    }

    /// Changes the records, and then knows of which collection they are.
    private func changeLedger(
        _ end: @escaping @Sendable (Result<Bool, Status>) -> Void,
        _ change: @escaping @Sendable (any StoreTransaction) throws(Status) -> Void
    ) {
        let documents = SharedBox(Mutex<[UInt8]?>(nil))
        pipeline.perform(
            { transaction throws(Status) in
                try change(transaction)
                let state = try OnceLedger.state(in: transaction)
                documents.value.withLock { $0 = state?.documents }
            },
            completion: { [pipeline] result in
                if case .success = result { pipeline.ledger.withLock { $0 = documents.value.withLock { $0 } } }
                end(result.map { true })
            })
    }

    private func deleteLedgerDocuments(
        _ entries: [OnceLedger.Entry], isMore: Bool, in snapshot: any Snapshot,
        _ end: @escaping @Sendable (Result<Bool, Status>) -> Void
    ) throws(Status) {
        var writes: [Write] = []
        var strays: [OnceLedger.Entry] = []
        for entry in entries {
            guard let path = DocumentKey.decode(entry.document), let stored = try Self.readable(entry, in: snapshot)
            else {
                strays.append(entry)
                continue
            }
            // Who writes to it at the same time delays its deletion.
            let time = Timestamp(microseconds: stored.updateVersion)
            writes.append(
                Write(
                    document: ResourceName(database: name, path: path), operation: .delete,
                    precondition: .updateTime(time)))
        }
        let rest = Countdown(of: writes.count + 1) { made, failure in
            // Those that failed are tried again with the next call.
            end(made == 0 ? failure.map { .failure($0) } ?? .success(false) : .success(isMore))
        }
        for write in writes {
            commit([write], requester: .server, makesEvents: false) { rest.count($0.map { _ in }) }
        }
        if strays.isEmpty { return rest.skip() }
        pipeline.perform(
            { [strays] transaction throws(Status) in
                for entry in strays where try Self.readable(entry, in: transaction) == nil {
                    try OnceLedger.delete(entry, in: transaction)
                }
            }, completion: { rest.count($0) })
    }

    /// The document of a record; nil when it is another one, or none, or damaged: a document that cannot be read is left
    /// to `hearth check`, and does not keep others from their deletion.
    private static func readable(
        _ entry: OnceLedger.Entry, in snapshot: any Snapshot
    ) throws(Status) -> StoredDocument? {
        do throws(Status) {
            let stored = try snapshot.document(entry.document)
            return stored?.createVersion == entry.version ? stored : nil
        } catch {
            if error.code == .dataLoss { return nil }
            throw error
        }
    }
}
