import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// google.firestore.v1.Firestore: the implementation of each method, for all transports.
///
/// Methods are called on the call's loop with a decoded request, and respond through the call, immediately or later.
/// Reads whose cost is that of their response run on the calling thread, others on the worker pool; commits are
/// answered when they are durable.
package final class FirestoreService: Sendable {
    package struct Options: Sendable {
        /// Reject queries without a defined index, as production does.
        package var requireIndexes = false

        package init() {}
    }

    let registry: DatabaseRegistry
    package let readiness: Readiness
    let pool: WorkerPool
    let options: Options
    let large: LargeRequests
    let memory: ServerMemory
    let longReads: LongReads
    let listeners = LoopSubscriptionsTable()
    package let streams = OpenStreams()
    let resumableStreams = ResumableStreams()
    let resultCounts = ResultCounts()

    package let authenticator: Authenticator
    package let access: AccessControl

    package init(
        registry: DatabaseRegistry, pool: WorkerPool, memory: ServerMemory = ServerMemory(),
        longReads: LongReads = LongReads(), options: Options, authenticator: Authenticator, access: AccessControl
    ) {
        self.authenticator = authenticator
        self.access = access
        access.rules.observe { [listeners] in listeners.judgeAll() }
        self.registry = registry
        readiness = Readiness { () throws(Status) in _ = try registry.databases() }
        self.pool = pool
        self.options = options
        self.memory = memory
        self.longReads = longReads
        large = LargeRequests(pool: pool, memory: memory)
    }

    // MARK: Shared by the methods

    /// Runs a method's body; an error becomes the call's status.
    func answer(_ call: any ServiceCall, _ body: () throws(Status) -> Void) {
        do throws(Status) {
            try body()
        } catch {
            call.finish(error)
        }
    }

    /// The database that a call names; a missing one is empty for callers that may create it.
    /// - Parameters:
    ///   - refused: ends the call when the database cannot be opened; nil finishes it.
    ///   - again: begins the method again.
    /// - Returns: nil when the database is not open: then it is opened, and `again` is called on the call's loop, or by
    ///   a worker when this is one. No worker waits meanwhile.
    /// - Throws: PERMISSION_DENIED for callers without access, NOT_FOUND when it does not exist.
    @inline(__always)
    func database(
        _ name: DatabaseName, for call: any ServiceCall, refused: (@Sendable (Status) -> Void)? = nil,
        again: @escaping @Sendable () -> Void
    ) throws(Status) -> Database? {
        let mayCreate = try access.mayCreate(name, call.identity)
        guard let database = registry.opened(name) else {
            return try openDatabase(name, mayCreate: mayCreate, call, refused, again)
        }
        if !mayCreate, !database.exists { throw DatabaseRegistry.missing(name) }
        return database
    }

    private func openDatabase(
        _ name: DatabaseName, mayCreate: Bool, _ call: any ServiceCall, _ refused: (@Sendable (Status) -> Void)?,
        _ again: @escaping @Sendable () -> Void
    ) throws(Status) -> Database? {
        let isOnLoop = call.loop.isCurrent
        let failed: @Sendable (Status) -> Void = { status in
            call.loop.execute { if let refused { refused(status) } else { call.finish(status) } }
        }
        registry.use(name, mayCreate: mayCreate) { [pool] result in
            switch result {
            case .failure(let status): failed(status)
            // Held meanwhile, so that it is not closed as unused again.
            case .success(let database) where isOnLoop:
                call.loop.execute { if !call.isFinished { withExtendedLifetime(database, again) } }
            case .success(let database):
                pool.run(.short, for: call.requester, cancellation: call.cancellation, refused: failed) {
                    withExtendedLifetime(database, again)
                }
            }
        }
        return nil
    }

    /// The state that a request reads.
    static func consistency(
        transaction: [UInt8]? = nil, newTransaction: TransactionOptionsMessage? = nil, readTime: TimestampMessage? = nil
    ) throws(Status) -> Database.Consistency {
        if let transaction, !transaction.isEmpty { return .transaction(transaction) }
        if let newTransaction {
            // A transaction without a mode that begins with a read is read-only, as the protos document.
            if newTransaction.readOnly == nil, newTransaction.readWrite == nil {
                return .newTransaction(.readOnly(readTime: nil))
            }
            return .newTransaction(try mode(newTransaction))
        }
        if let readTime { return .readTime(try precise(readTime)) }
        return .strong
    }

    static func mode(_ options: TransactionOptionsMessage?) throws(Status) -> TransactionMode {
        if let readOnly = options?.readOnly {
            return .readOnly(readTime: try readOnly.readTime.map { time throws(Status) in try precise(time) })
        }
        let retry = options?.readWrite?.retryTransaction ?? []
        return .readWrite(
            retry: retry.isEmpty ? nil : retry,
            concurrency: options?.readWrite?.concurrencyMode == .optimistic ? .optimistic : .pessimistic)
    }

    private static func precise(_ time: TimestampMessage) throws(Status) -> Timestamp {
        let timestamp = try time.preciseTimestamp()
        if timestamp.microseconds <= 0 { throw .invalidArgument("Only timestamps past epoch are supported.") }
        return timestamp
    }

    /// A stored document in the form of a response.
    static func encoded(
        _ document: StoredDocument, name: String, _ projection: Projection?
    ) throws(Status) -> EncodedDocument {
        var encoded = document.encoded(name: name)
        if let projection { encoded.fields = try projection.apply(to: encoded.fields) }
        return encoded
    }

    /// Like `permitted` of the access control, but a new transaction only locks what its identity may lock.
    /// - Throws: PERMISSION_DENIED for a read of the past by a client that rules decide about.
    private func permitted(
        _ consistency: Database.Consistency, _ call: any ServiceCall, _ database: Database
    ) throws(Status) -> Database.Consistency {
        if case .readTime = consistency { try access.requirePast(call.identity, database.name) }
        guard case .newTransaction(let mode) = consistency else { return consistency }
        return .newTransaction(try access.permitted(mode, call.identity, database.name))
    }

    /// Reads in a view, and responds on the call's loop.
    /// - Parameters:
    ///   - judge: decides whether the read may see a view. Called before a transaction takes a lock, and for the view
    ///     that is read. A read that is denied, or that fails before its first response, leaves no lock and no
    ///     transaction. When it fails with `WorkMeter.isHeavier`, a worker calls it.
    ///   - body: on the loop when the view is available immediately, otherwise on the loop later.
    func read(
        _ call: any ServiceCall, _ database: Database, _ consistency: Database.Consistency,
        _ targets: [Database.ReadTarget],
        judge: @escaping ReadJudge = { _ throws(Status) in },
        _ body: @escaping @Sendable (Database.ViewGrant) throws(Status) -> Void
    ) throws(Status) {
        if case .strong = consistency, call.loop.isCurrent {
            return try readPresent(call, database, targets, judge, body)
        }
        let permitted = try permitted(consistency, call, database)
        let onLoop: @Sendable (ReadView) throws(Status) -> Void = { view throws(Status) in
            view.budget = .brief()
            try judge(StateReader(view, decodedBytesMax: Limits.judgedOnLoopBytesMax))
            view.budget = nil
        }
        database.read(permitted, targets, requester: call.requester, judge: onLoop) { [self] result in
            let handover = GrantBox(result)
            call.onLoop {
                do throws(Status) {
                    if case .failure(WorkMeter.isHeavier) = handover.result {
                        return try self.readOnWorker(call, database, consistency, targets, judge, body)
                    }
                    let grant = try handover.result.get()
                    if call.isFinished { return grant.withdraw() }
                    do throws(Status) {
                        try onLoop(grant.view)
                    } catch WorkMeter.isHeavier {
                        grant.withdraw()
                        return try self.readOnWorker(call, database, consistency, targets, judge, body)
                    } catch {
                        grant.withdraw()
                        throw error
                    }
                    do throws(Status) {
                        try body(grant)
                    } catch {
                        // No client knows the new transaction; an earlier one keeps its reads.
                        if grant.newTransaction != nil { grant.withdraw() }
                        throw error
                    }
                } catch {
                    call.finish(error)
                }
            }
        }
    }

    /// Reads the present on the loop. That takes no lock and begins no transaction, so nothing is withdrawn when it
    /// fails.
    private func readPresent(
        _ call: any ServiceCall, _ database: Database, _ targets: [Database.ReadTarget], _ judge: @escaping ReadJudge,
        _ body: @escaping @Sendable (Database.ViewGrant) throws(Status) -> Void
    ) throws(Status) {
        let view = try database.view()
        do throws(Status) {
            try judge(StateReader(view, decodedBytesMax: Limits.judgedOnLoopBytesMax))
        } catch WorkMeter.isHeavier {
            return try readOnWorker(call, database, .strong, targets, judge, body)
        } catch {
            throw error
        }
        try body(Database.ViewGrant(view))
    }

    /// Like `read`, for reads whose rules need more decoding than a loop may do.
    private func readOnWorker(
        _ call: any ServiceCall, _ database: Database, _ consistency: Database.Consistency,
        _ targets: [Database.ReadTarget], _ judge: @escaping ReadJudge,
        _ body: @escaping @Sendable (Database.ViewGrant) throws(Status) -> Void
    ) throws(Status) {
        if call.isFinished { return }
        try readOnWorker(call, database, consistency, targets, judge: judge) { answer in
            do throws(Status) {
                let view = try database.pastView(at: answer.readTime)
                try body(
                    Database.ViewGrant(view, newTransaction: answer.newTransaction, undo: answer.withdraw))
            } catch {
                if answer.newTransaction != nil { answer.withdraw() }
                call.finish(error)
            }
        }
    }

    /// Like `read`, for reads that cost more than a loop may do before their first response: judged and locked by a
    /// worker, and answered with the state that was judged.
    /// - Parameter body: on the loop.
    func readOnWorker(
        _ call: any ServiceCall, _ database: Database, _ consistency: Database.Consistency,
        _ targets: [Database.ReadTarget], judge: @escaping ReadJudge,
        _ body: @escaping @Sendable (ReadAnswer) -> Void
    ) throws(Status) {
        let consistency = try permitted(consistency, call, database)
        let failed: @Sendable (Status) -> Void = { status in call.onLoop { call.finish(status) } }
        let job: @Sendable (WorkerSlice) -> Void = { [self] slice in
            let judgeFirst: Database.Judge = { view throws(Status) in try judge(Self.reader(of: view, call, slice)) }
            database.read(consistency, targets, requester: call.requester, judge: judgeFirst) { result in
                switch result {
                case .failure(let status): failed(status)
                case .success(let grant): self.judgeOnWorker(call, database, grant, judge, body)
                }
            }
        }
        call.onLoop { [pool] in
            do throws(Status) { try call.postpone() } catch { return call.finish(error) }
            pool.runInSlices(
                .long, for: call.requester, cancellation: call.cancellation, refused: failed, job)
        }
    }

    /// Judges the state of a grant, which is not held while the job waits.
    private func judgeOnWorker(
        _ call: any ServiceCall, _ database: Database, _ grant: Database.ViewGrant,
        _ judge: @escaping ReadJudge, _ body: @escaping @Sendable (ReadAnswer) -> Void
    ) {
        let answer = ReadAnswer(grant)
        let refused: @Sendable (Status) -> Void = { status in
            answer.withdraw()
            call.onLoop { call.finish(status) }
        }
        longReads.whenFree(for: call.requester, cancellation: call.cancellation) { [pool] read in
            switch read {
            case .failure(let status): refused(status)
            case .success(let read):
                pool.runInSlices(.long, for: call.requester, cancellation: call.cancellation, refused: refused) {
                    slice in
                    do throws(Status) {
                        let view = try database.pastView(at: answer.readTime, under: read)
                        try judge(Self.reader(of: view, call, slice))
                    } catch {
                        return refused(error)
                    }
                    call.onLoop { if call.isFinished { answer.withdraw() } else { body(answer) } }
                }
            }
        }
    }

    /// Reads a state for a worker that judges it; gives way before each document.
    private static func reader(of view: ReadView, _ call: any ServiceCall, _ slice: WorkerSlice) -> StateReader {
        let check: () throws(Status) -> Void = { () throws(Status) in
            slice.giveWay()
            try call.cancellation.check()
        }
        view.budget = .long(check)
        return StateReader(view, check: check)
    }
}

/// Moves a view from the thread that created it to the loop that uses it; nothing else holds it then.
private final class GrantBox: @unchecked Sendable {
    let result: Result<Database.ViewGrant, Status>

    init(_ result: Result<Database.ViewGrant, Status>) {
        self.result = result
    }
}
