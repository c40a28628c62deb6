import HearthEngine
import HearthModel
import Synchronization

/// The deletion of a database's expired documents: what it knows between two of its steps.
///
/// Each policy has an index of the times at which its documents expire (`IndexDefinition.Scope.expiry`). A round takes the
/// expired ones in the order of these times, some with each step, and goes on behind those that could not be deleted:
/// somebody writes to them, or they are damaged. The next round begins with them.
final class ExpirySweep: Sendable {
    private struct State {
        var isUnderWay = false
        /// Where the present round goes on, by the ids of indexes.
        var positions: [UInt32: [UInt8]] = [:]
        var deletedCount = 0
        var overdueMicroseconds: Int64 = 0
    }

    private let state = Mutex(State())

    var deletedCount: Int { state.withLock { $0.deletedCount } }
    var overdueMicroseconds: Int64 { state.withLock { $0.overdueMicroseconds } }

    /// - Returns: false while another step is under way.
    func begin() -> Bool {
        state.withLock { state in
            defer { state.isUnderWay = true }
            return !state.isUnderWay
        }
    }

    func end(deleted: Int) {
        state.withLock { state in
            state.isUnderWay = false
            state.deletedCount += deleted
        }
    }

    /// Finds what a step deletes, and where the next one goes on.
    /// - Parameters:
    ///   - now: in microseconds since 1970.
    ///   - limit: documents of all policies together.
    func find(
        _ catalog: IndexCatalog, in snapshot: any Snapshot, now: Int64, limit: Int
    ) throws(Status) -> Found {
        let policies = catalog.expiryPolicies
        var positions = state.withLock { $0.positions }
        var found = Found()
        var next: [UInt32: [UInt8]] = [:]
        var open = policies.map { Search($0.index, $0.policy, now: now) }
        var left = limit
        // Each policy has its share, so that none waits for another one. Then those that have more share what is left: of
        // a thousand policies few have documents that expire.
        for _ in 0..<2 where left > 0 && found.bytes < Limits.expiryStepBytesMax {
            let share = max(1, left / max(1, open.count))
            var more: [Search] = []
            for var search in open {
                let position = next[search.index.id] ?? positions.removeValue(forKey: search.index.id)
                next[search.index.id] = try search.run(after: position, limit: share, in: snapshot, &found, &left)
                if next[search.index.id] != nil { more.append(search) }
            }
            open = more
        }
        found.isMore = !open.isEmpty
        let overdue = found.oldest.map { max(0, now - $0) } ?? 0
        state.withLock { state in
            state.positions = next
            state.overdueMicroseconds = overdue
        }
        return found
    }

    struct Found {
        struct Document {
            var key: [UInt8]
            var updateVersion: Int64
            var index: IndexDefinition
            var policy: FieldOverride.TimeToLive
        }

        var documents: [Document] = []
        /// Whether a step behind this one finds more.
        var isMore = false
        /// The earliest expiry, in microseconds since 1970, that has passed.
        var oldest: Int64?
        /// The earliest that is still to come.
        var next: Int64?
        fileprivate var bytes = 0
    }

    private struct Search {
        let index: IndexDefinition
        let policy: FieldOverride.TimeToLive
        let now: Int64
        let prefix: [UInt8]

        init(_ index: IndexDefinition, _ policy: FieldOverride.TimeToLive, now: Int64) {
            self.index = index
            self.policy = policy
            self.now = now
            prefix = IndexKey.idPrefix(index) + [IndexValue.Tag.timestamp]
        }

        /// - Parameter left: what is left of the step's limit.
        /// - Returns: the entry behind which there may be more that has expired; nil when there isn't.
        mutating func run(
            after position: [UInt8]?, limit: Int, in snapshot: any Snapshot, _ found: inout Found, _ left: inout Int
        ) throws(Status) -> [UInt8]? {
            if let first = try firstExpiry(in: snapshot) {
                if first > now {
                    found.next = min(found.next ?? .max, first)
                    return nil
                }
                found.oldest = min(found.oldest ?? .max, first)
            }
            var range = KeyRange(prefix: prefix)
            if let position { range.lower = position + [0] }
            let cursor = try snapshot.scan(.entries, range, reverse: false, values: false)
            defer { cursor.close() }
            var count = 0
            while try cursor.next() {
                let entry = cursor.key
                guard let expiry = expiry(of: entry) else { continue }
                if expiry > now {
                    found.next = min(found.next ?? .max, expiry)
                    return nil
                }
                try take(entry, in: snapshot, &found)
                count += 1
                left -= 1
                if count >= limit || found.bytes >= Limits.expiryStepBytesMax { return entry }
            }
            return nil
        }

        private func firstExpiry(in snapshot: any Snapshot) throws(Status) -> Int64? {
            let cursor = try snapshot.scan(.entries, KeyRange(prefix: prefix), reverse: false, values: false)
            defer { cursor.close() }
            return try cursor.next() ? expiry(of: cursor.key) : nil
        }

        /// When the document of an entry expires, in microseconds since 1970.
        private func expiry(of entry: [UInt8]) -> Int64? {
            guard entry.count >= prefix.count + 8 else { return nil }
            let bits = IndexValue.readBigEndian(entry[prefix.count..<prefix.count + 8])
            let time = Int64(bitPattern: bits ^ (1 << 63))
            let (expiry, isFar) = time.addingReportingOverflow(policy.offsetSeconds * 1_000_000)
            return isFar ? .max : expiry
        }

        private func take(_ entry: [UInt8], in snapshot: any Snapshot, _ found: inout Found) throws(Status) {
            guard let key = IndexKey.documentKey(of: entry, index) else { return }
            do throws(Status) {
                guard let stored = try snapshot.document(key) else { return }
                found.bytes += stored.fields.count
                found.documents.append(
                    Found.Document(key: key, updateVersion: stored.updateVersion, index: index, policy: policy))
            } catch {
                // A damaged document is left to `hearth check`, and does not keep others from their deletion.
                if error.code != .dataLoss { throw error }
            }
        }
    }
}

/// Lets the deletion of an expired document pass while the policy by which it has expired is in force.
struct ExpiryGuard: CommitGuard {
    let catalog: CurrentCatalog
    let index: IndexDefinition
    let policy: FieldOverride.TimeToLive

    func check(_ commit: GuardedCommit) throws(Status) {
        guard catalog.value.expiryPolicy(index) == policy else {
            throw .failedPrecondition("The time-to-live policy has changed.")
        }
    }
}
