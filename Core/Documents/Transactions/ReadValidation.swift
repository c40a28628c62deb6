import HearthEngine
import HearthModel

/// Whether the data that a transaction has read is unchanged.
///
/// Recent commits are held in memory with their changes. For a transaction that began before them, the present state is
/// compared with what it has read: document by document, and for its queries only the changes in their collections
/// (`FeedIndex`). Such a commit is validated by the preparer's thread; the writer then checks only later commits.
extension CommitPipeline {
    /// How much is examined before the answer is "changed": that answer is always safe.
    struct ValidationBounds {
        var documentsMax: Int
        var keysBytesMax: Int

        /// On an event loop, and on the writer's thread: some 20 ms.
        static let short = ValidationBounds(documentsMax: 2000, keysBytesMax: 256 << 10)
        /// On other threads.
        static let long = ValidationBounds(documentsMax: .max, keysBytesMax: Limits.historyKeysBytesMax)
    }

    /// Whether a transaction has read data from before the recent commits.
    func restsOnOldReads(_ request: Request) -> Bool {
        guard !request.writes.isEmpty, let read = request.transaction, let version = read.version, !read.readSet.isEmpty
        else { return false }
        return !recent.reaches(version)
    }

    func validate(
        _ readSet: ReadSet, since version: Int64?, _ group: inout Group, in snapshot: any Snapshot
    ) throws(Status) {
        guard let version, !readSet.isEmpty else { return }
        // The whole group is later than any read.
        if readSet.touchesDocuments(of: group.changedKeys()) { throw Self.contention }
        if !readSet.queries.isEmpty {
            for set in group.sets {
                if try readSet.isTouched(by: set) { throw Self.contention }
            }
        }
        if try isTouched(readSet, since: version, through: commitClock.committed, in: snapshot) {
            throw Self.contention
        }
    }

    /// Whether commits after a version have changed the read data. True also when more would have to be examined than
    /// the bounds allow.
    /// - Parameters:
    ///   - last: the version of the last commit that the snapshot shows; it may not be among the recent changes yet.
    ///   - snapshot: shows the present and the feed.
    func isTouched(
        _ readSet: ReadSet, since version: Int64, through last: Int64, in snapshot: any Snapshot,
        _ bounds: ValidationBounds = .short, meter: WorkMeter = WorkMeter()
    ) throws(Status) -> Bool {
        if readSet.isEmpty { return false }
        if let sets = recent.changes(after: version, through: last) {
            for set in sets {
                if try readSet.isTouched(by: set) { return true }
            }
            return false
        }
        // Earlier changes are no longer known: everything may have been deleted.
        if version < (try Feed.forgottenVersion(in: snapshot)) { return true }
        if readSet.documents.count > bounds.documentsMax { return true }
        for key in readSet.documents {
            meter.chargeDocument(0)
            if try Feed.lastChange(of: key, in: snapshot) > version { return true }
        }
        for (scope, matchers) in readSet.queriesByScope {
            let changes: ScopeChanges
            do throws(Status) {
                changes = try ScopeChanges(
                    in: scope, after: version, through: last, snapshot, snapshotVersion: last, hub.history, meter,
                    bytesMax: bounds.keysBytesMax)
            } catch {
                if error.code == .resourceExhausted { return true }
                throw error
            }
            for (key, first) in changes.firstVersions {
                if try isMatched(key, changedAt: first, by: matchers, in: snapshot, meter) { return true }
            }
        }
        return false
    }

    /// Whether a document belongs to a query's results now, or did before its first change. No read has seen the states
    /// in between.
    private func isMatched(
        _ key: [UInt8], changedAt version: Int64, by matchers: [QueryMatcher], in snapshot: any Snapshot,
        _ meter: WorkMeter
    ) throws(Status) -> Bool {
        let matchers = matchers.filter { $0.isInScope(key) }
        if matchers.isEmpty { return false }
        meter.chargeDocument(0)
        for state in [try Feed.stateBefore(version, key, in: snapshot), try snapshot.document(key)] {
            guard let state else { continue }
            let fields = FieldTable(state)
            for matcher in matchers where try matcher.matches(key: key, fields) { return true }
        }
        return false
    }
}
