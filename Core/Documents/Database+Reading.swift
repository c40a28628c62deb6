import HearthConcurrency
import HearthModel
import HearthWire
import Synchronization

/// Reads: which state they show, and the locks that those of read-write transactions take.
extension Database {
    /// Which state a read shows. Source: `consistency_selector` of the read requests.
    package enum Consistency: Sendable {
        case strong
        case readTime(Timestamp)
        case transaction([UInt8])
        case newTransaction(TransactionMode)
    }

    /// What a read in a transaction will rely on.
    package enum ReadTarget: Sendable {
        case document(ResourcePath)
        case query(NormalizedQuery)
    }

    /// A view for a request, and the id of the transaction that it began.
    package struct ViewGrant {
        package var view: ReadView
        package var newTransaction: [UInt8]?
        package fileprivate(set) var undo: @Sendable () -> Void = {}

        package init(_ view: ReadView, newTransaction: [UInt8]? = nil, undo: @escaping @Sendable () -> Void = {}) {
            self.view = view
            self.newTransaction = newTransaction
            self.undo = undo
        }

        /// Releases the locks that the read has taken, and ends the transaction that it began. For a read that is not
        /// allowed after all, or whose caller no longer waits.
        package func withdraw() { undo() }
    }

    /// Decides whether a read may see a view.
    package typealias Judge = (ReadView) throws(Status) -> Void

    /// Passes a view to `body`: at once and on this thread, unless the read must wait for locks of other transactions;
    /// then later, from another thread.
    /// - Parameters:
    ///   - requester: the account to which a new transaction is charged.
    ///   - judge: called with the present state before a lock is taken or a read-write transaction begins, so that a
    ///     read that is not allowed delays no other client. The view passed to `body` may show another state, so `body`
    ///     must judge again.
    package func read(
        _ consistency: Consistency, _ targets: [ReadTarget], judge: Judge = { _ in },
        _ body: @escaping @Sendable (Result<ViewGrant, Status>) -> Void
    ) {
        read(consistency, targets, requester: .server, judge: judge, body)
    }

    package func read(
        _ consistency: Consistency, _ targets: [ReadTarget], requester: Requester, judge: Judge,
        _ body: @escaping @Sendable (Result<ViewGrant, Status>) -> Void
    ) {
        do throws(Status) {
            switch consistency {
            case .strong: body(.success(ViewGrant(try view())))
            case .readTime(let time): try read(at: time, newTransaction: nil, body)
            case .transaction(let id):
                if try !transactions.use(id).isReadOnly { try judge(try view()) }
                try read(in: id, isNew: false, targets, body)
            case .newTransaction(let mode):
                if case .readWrite = mode { try judge(try view()) }
                let id = try begin(mode, requester: requester)
                do throws(Status) {
                    try read(in: id, isNew: true, targets) { [self] result in
                        // The client would never learn of the transaction when its first read fails.
                        if case .failure = result { abandon(id) }
                        body(result)
                    }
                } catch {
                    abandon(id)
                    throw error
                }
            }
        } catch {
            body(.failure(error))
        }
    }

    private func read(
        at time: Timestamp, newTransaction: [UInt8]?, _ body: @escaping @Sendable (Result<ViewGrant, Status>) -> Void
    ) throws(Status) {
        try check(readTime: time)
        let time = presentTime(for: time)
        commitClock.raise(to: time.microseconds)
        commitClock.whenSettled { [self] in
            do throws(Status) {
                let view = try view(at: time.microseconds, readTime: time)
                var grant = ViewGrant(view, newTransaction: newTransaction)
                if let newTransaction { grant.undo = { [self] in abandon(newTransaction) } }
                body(.success(grant))
            } catch {
                body(.failure(error))
            }
        }
    }

    private func read(
        in id: [UInt8], isNew: Bool, _ targets: [ReadTarget],
        _ body: @escaping @Sendable (Result<ViewGrant, Status>) -> Void
    ) throws(Status) {
        let transaction = try transactions.use(id)
        if transaction.isReadOnly, let time = transaction.readTime {
            return try read(at: time, newTransaction: isNew ? id : nil, body)
        }
        let resources = targets.map { target -> LockTable.Resource in
            switch target {
            case .document(let path): .document(DocumentKey.encode(path))
            case .query(let query): .query(QueryMatcher(query))
            }
        }
        try transaction.readSet.checkCapacity(for: resources)
        let reserved = try transactions.reserve(resources, for: transaction)
        let taker = LockSequence(transaction.isLocking ? resources : [], for: transaction.owner, in: locks)
        taker.take { [self] accepted in
            do throws(Status) {
                guard accepted else {
                    throw .resourceExhausted("Too many transactions wait for the data that this one reads.")
                }
                let view = try extend(id, reading: resources, reserved)
                var grant = ViewGrant(view, newTransaction: isNew ? id : nil)
                grant.undo = { [self] in
                    if isNew { abandon(id) } else { locks.release(taker.taken, of: transaction.owner) }
                }
                body(.success(grant))
            } catch {
                // A failed read leaves nothing behind.
                if !isNew { locks.release(taker.taken, of: transaction.owner) }
                body(.failure(error))
            }
        }
    }

    /// A view for a read-write transaction, with the read noted. The earlier reads are validated again. If they are
    /// unchanged, the transaction moves to the present; otherwise it stays in its past, and its commit will fail.
    private func extend(
        _ id: [UInt8], reading resources: [LockTable.Resource], _ reserved: MemoryReservation?
    ) throws(Status) -> ReadView {
        while true {
            let present = try view()
            let (version, readTime, revision) = try basis(of: id, reading: resources, present)
            // Another read of the same transaction may have run in between. Then the validation did not cover all
            // reads.
            let noted = try transactions.note(
                resources, reserved: reserved, of: id, at: version, readTime, revision: revision)
            if !noted { continue }
            if version == present.version { return present }
            do throws(Status) {
                return try view(at: version, readTime: readTime)
            } catch {
                // Everything was cleared meanwhile. The commit will fail, but no read does.
                if error == Self.tooOld { return present }
                throw error
            }
        }
    }

    /// The version and the read time of a transaction's next read, and the revision of the transaction for which they
    /// hold.
    private func basis(
        of id: [UInt8], reading resources: [LockTable.Resource], _ present: ReadView
    ) throws(Status) -> (version: Int64, readTime: Timestamp, revision: Int) {
        let transaction = try transactions.use(id)
        try transaction.readSet.checkCapacity(for: resources)
        if let earlier = transaction.version, let readTime = transaction.readTime, earlier < present.version {
            let isTouched = try pipeline.isTouched(
                transaction.readSet, since: earlier, through: present.version, in: present.snapshot)
            if isTouched { return (earlier, readTime, transaction.revision) }
        }
        return (present.version, present.readTime, transaction.revision)
    }
}
