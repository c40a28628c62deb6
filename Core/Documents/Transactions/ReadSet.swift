import HearthConcurrency
import HearthModel

/// What a transaction has read: documents, and the queries whose results it relies on.
struct ReadSet: Sendable {
    private(set) var documents: Set<[UInt8]> = []
    private(set) var queries: [QueryMatcher] = []
    /// The approximate memory of the transaction's read set, locks included.
    private(set) var bytes = 0
    /// Memory that is counted for it; released with the last copy of the read set. Nil while little was read.
    private var held: MemoryReservation?

    var isEmpty: Bool { documents.isEmpty && queries.isEmpty }

    /// - Throws: RESOURCE_EXHAUSTED when that much more would be too much.
    func checkCapacity(for resources: [LockTable.Resource]) throws(Status) {
        let queries = resources.count { if case .query = $0 { true } else { false } }
        if documents.count + resources.count - queries > Limits.transactionReadSetMax {
            throw .resourceExhausted(
                "A transaction may not read more than \(Limits.transactionReadSetMax) documents by their names.")
        }
        if self.queries.count + queries > Limits.transactionQueriesMax {
            throw .resourceExhausted("A transaction may not run more than \(Limits.transactionQueriesMax) queries.")
        }
    }

    /// The approximate memory of that much more.
    func bytes(for resources: [LockTable.Resource]) -> Int {
        resources.reduce(0) { sum, resource in
            switch resource {
            case .document(let key): documents.contains(key) ? sum : sum + Self.bytes(ofKey: key)
            case .query(let matcher): sum + matcher.query.heldBytes
            }
        }
    }

    /// The key in the read set, in the locks of its document, and in those of its transaction.
    private static func bytes(ofKey key: [UInt8]) -> Int { 2 * key.count + 192 }

    /// Notes a read.
    /// - Parameter reserved: memory for it, reserved by the transaction's requester.
    mutating func insert(_ resources: [LockTable.Resource], reserved: MemoryReservation?) {
        bytes += bytes(for: resources)
        if let reserved {
            if let held { held.absorb(reserved) } else { held = reserved }
        }
        for resource in resources {
            switch resource {
            case .document(let key): documents.insert(key)
            case .query(let matcher): queries.append(matcher)
            }
        }
    }

    /// Notes a read that needs no memory of any share.
    mutating func insert(_ resource: LockTable.Resource) { insert([resource], reserved: nil) }

    /// Whether a change touches anything that was read: the document itself, or the results of a query, by its state
    /// before or after.
    func isTouched(by change: Change) throws(Status) -> Bool {
        if documents.contains(change.key) { return true }
        if queries.isEmpty { return false }
        let (before, after) = (change.before.map { FieldTable($0) }, change.after.map { FieldTable($0) })
        for query in queries where query.isInScope(change.key) {
            if let before, try query.matches(key: change.key, before) { return true }
            if let after, try query.matches(key: change.key, after) { return true }
        }
        return false
    }

    /// The queries by scope, so that changes there are searched once.
    var queriesByScope: [ScopeChanges.Scope: [QueryMatcher]] {
        Dictionary(grouping: queries) { ScopeChanges.Scope($0.query.query) }
    }

    /// Whether one of the documents that were read by their names is among `keys`; a walk over the smaller of both.
    func touchesDocuments(of keys: Set<[UInt8]>) -> Bool { !documents.isDisjoint(with: keys) }

    func isTouched(by set: ChangeSet) throws(Status) -> Bool {
        for change in set.changes {
            if try isTouched(by: change) { return true }
        }
        return false
    }
}
