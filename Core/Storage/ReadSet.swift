import HearthModel

/// What a transaction has read: documents, and the queries whose results it relies on.
struct ReadSet: Sendable {
    private(set) var documents: Set<[UInt8]> = []
    private(set) var queries: [QueryMatcher] = []

    var isEmpty: Bool { documents.isEmpty && queries.isEmpty }

    /// - Throws: RESOURCE_EXHAUSTED when so much more would be too much.
    func checkRoom(for resources: [LockTable.Resource]) throws(Status) {
        let queries = resources.count { if case .query = $0 { true } else { false } }
        if documents.count + resources.count - queries > Limits.transactionReadSetMax {
            throw .resourceExhausted(
                "A transaction may not read more than \(Limits.transactionReadSetMax) documents by their names.")
        }
        if self.queries.count + queries > Limits.transactionQueriesMax {
            throw .resourceExhausted("A transaction may not run more than \(Limits.transactionQueriesMax) queries.")
        }
    }

    mutating func insert(_ resource: LockTable.Resource) {
        switch resource {
        case .document(let key): documents.insert(key)
        case .query(let matcher): queries.append(matcher)
        }
    }

    /// Whether a change touches anything that was read: the document itself, or the results of a query, by what it was
    /// or by what it became.
    func isTouched(by change: Change) throws(Status) -> Bool {
        if documents.contains(change.key) { return true }
        for query in queries where query.isInScope(change.key) {
            if let before = change.before, try query.matches(key: change.key, fields: before.fields) { return true }
            if let after = change.after, try query.matches(key: change.key, fields: after.fields) { return true }
        }
        return false
    }

    /// The queries by what they look at, so that what changed there is looked for once.
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
