import HearthConcurrency
import HearthEngine
import HearthModel
import Synchronization

/// The deletion of documents whose time to live is over. Source: "Manage data retention with TTL policies" in the
/// documentation of Cloud Firestore.
extension Database {
    /// What one step has done.
    package struct ExpiryStep: Sendable, Equatable {
        package var deletedCount = 0
        /// Whether the next step is to be made at once.
        package var isMore = false
        /// When the next document expires, in microseconds since 1970; nil when none does, or when some have.
        package var nextExpiry: Int64?
    }

    /// Whether documents of some collection group expire.
    package var hasExpiryPolicies: Bool { !catalog.expiryPolicies.isEmpty }

    /// Documents that were deleted because they had expired, since the database was opened.
    package var expiredCount: Int { expiry.deletedCount }

    /// For how long the document that has expired first has been waiting for its deletion, as the last step found it.
    package var expiryOverdueSeconds: Double { Double(expiry.overdueMicroseconds) / 1e6 }

    /// Deletes documents that have expired, a bounded number at a time, each by a commit of its own, with events. One that is
    /// changed at the same time is not deleted: a later step looks at it again. Does nothing while another call is under way.
    /// - Parameter completion: called on the writer's thread, or at once.
    package func deleteExpired(
        limit: Int = Limits.expiryStepDocumentsMax,
        completion: @escaping @Sendable (Result<ExpiryStep, Status>) -> Void
    ) {
        if !expiry.begin() { return completion(.success(ExpiryStep())) }
        do throws(Status) {
            let (snapshot, catalog) = try currentCatalog.snapshot(of: store)
            defer { snapshot.close() }
            let found = try expiry.find(catalog, in: snapshot, now: clock.now().microseconds, limit: limit)
            delete(found, completion)
        } catch {
            expiry.end(deleted: 0)
            completion(.failure(error))
        }
    }

    private func delete(
        _ found: ExpirySweep.Found, _ completion: @escaping @Sendable (Result<ExpiryStep, Status>) -> Void
    ) {
        let deletions = found.documents.compactMap { document -> (write: Write, guard: ExpiryGuard)? in
            guard let path = DocumentKey.decode(document.key) else { return nil }
            let write = Write(
                document: ResourceName(database: name, path: path), operation: .delete,
                precondition: .updateTime(Timestamp(microseconds: document.updateVersion)))
            return (write, ExpiryGuard(catalog: currentCatalog, index: document.index, policy: document.policy))
        }
        let step = ExpiryStep(isMore: found.isMore, nextExpiry: found.oldest == nil ? found.next : nil)
        let rest = Countdown(of: deletions.count + 1) { [expiry] made, failure in
            expiry.end(deleted: made)
            var step = step
            step.deletedCount = made
            // Who writes to a document has it deleted later. A disk that fails has all of them fail.
            if made == 0, let failure, failure.code != .failedPrecondition { return completion(.failure(failure)) }
            completion(.success(step))
        }
        for (write, policy) in deletions {
            commit([write], guard: policy, requester: .server) { rest.count($0.map { _ in }) }
        }
        rest.skip()
    }
}
