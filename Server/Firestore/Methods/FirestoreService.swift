import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments
import HearthWire

/// google.firestore.v1.Firestore: what each method does, whatever carries the call.
///
/// Methods are called on the call's loop with a decoded request, and answer through the call, at once or later. Reads run
/// where they are called when their cost is that of their answer, else on the worker pool; commits are answered when they
/// are durable.
package final class FirestoreService: Sendable {
    package struct Options: Sendable {
        /// Refuse queries, as production does, whose index isn't defined.
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
    let listeners = Listeners()
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

    /// Runs a method's body; a refusal becomes the call's status.
    func answer(_ call: any ServiceCall, _ body: () throws(Status) -> Void) {
        do throws(Status) {
            try body()
        } catch {
            call.finish(error)
        }
    }

    /// The database that a call names; one that doesn't exist is empty for those who may create it.
    /// - Parameters:
    ///   - refused: ends the call when the database can't be opened; nil finishes it.
    ///   - again: begins the method anew.
    /// - Returns: nil when the database isn't open: then it is opened, and `again` called on the call's loop, or by a worker
    ///   when this is one: no worker waits meanwhile.
    /// - Throws: PERMISSION_DENIED for who has no business there, NOT_FOUND when it doesn't exist.
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
            // Held meanwhile, so that it can't be closed again for want of use.
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

    /// Which state a request wants to read.
    static func consistency(
        transaction: [UInt8]? = nil, newTransaction: TransactionOptionsMessage? = nil, readTime: TimestampMessage? = nil
    ) throws(Status) -> Database.Consistency {
        if let transaction, !transaction.isEmpty { return .transaction(transaction) }
        if let newTransaction {
            // Beginning with a read, a transaction without a mode is read-only, as the protos say.
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

    /// A stored document as an answer shows it.
    static func encoded(
        _ document: StoredDocument, name: String, _ projection: Projection?
    ) throws(Status) -> EncodedDocument {
        var encoded = document.encoded(name: name)
        if let projection { encoded.fields = try projection.apply(to: encoded.fields) }
        return encoded
    }

    /// The same, but that a new transaction locks only what its identity may lock.
    private func permitted(
        _ consistency: Database.Consistency, _ call: any ServiceCall, _ database: Database
    ) throws(Status) -> Database.Consistency {
        guard case .newTransaction(let mode) = consistency else { return consistency }
        return .newTransaction(try access.permitted(mode, call.identity, database.name))
    }

    /// Reads in a view, and answers on the call's loop.
    /// - Parameters:
    ///   - judge: whether the read is allowed to see a view. Asked before a transaction takes a lock, and of the view that is
    ///     read. A read that is refused, or that fails before it has answered anything, leaves no lock and no transaction. When
    ///     it fails with `WorkMeter.isHeavier`, a worker asks.
    ///   - body: on the loop when the view was there at once, else on the loop later.
    func read(
        _ call: any ServiceCall, _ database: Database, _ consistency: Database.Consistency,
        _ targets: [Database.ReadTarget],
        judge: @escaping ReadJudge = { _ throws(Status) in },
        _ body: @escaping @Sendable (Database.ViewGrant) throws(Status) -> Void
    ) throws(Status) {
        let permitted = try permitted(consistency, call, database)
        let onLoop: @Sendable (ReadView) throws(Status) -> Void = { view throws(Status) in
            try judge(StateReader(view, decodedBytesMax: Limits.judgedOnLoopBytesMax))
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
                        // Nobody has learnt of the transaction; one that was known has read what it has read.
                        if grant.newTransaction != nil { grant.withdraw() }
                        throw error
                    }
                } catch {
                    call.finish(error)
                }
            }
        }
    }

    /// The same for reads that rules judge by more than a loop may decode.
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

    /// The same for reads that cost more than a loop may do before they have answered anything: judged and locked by a worker, and
    /// answered with the state that was judged.
    /// - Parameter body: on the loop.
    func readOnWorker(
        _ call: any ServiceCall, _ database: Database, _ consistency: Database.Consistency,
        _ targets: [Database.ReadTarget], judge: @escaping ReadJudge,
        _ body: @escaping @Sendable (ReadAnswer) -> Void
    ) throws(Status) {
        let consistency = try permitted(consistency, call, database)
        let failed: @Sendable (Status) -> Void = { status in call.onLoop { call.finish(status) } }
        pool.runInSlices(.long, for: call.requester, cancellation: call.cancellation, refused: failed) { [self] turn in
            let judgeFirst: Database.Judge = { view throws(Status) in try judge(Self.reader(of: view, call, turn)) }
            database.read(consistency, targets, requester: call.requester, judge: judgeFirst) { result in
                switch result {
                case .failure(let status): failed(status)
                case .success(let grant): self.judgeOnWorker(call, database, grant, judge, body)
                }
            }
        }
    }

    /// Judges the state of a grant, which isn't held while that waits for its turn.
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
                    turn in
                    do throws(Status) {
                        let view = try database.pastView(at: answer.readTime, under: read)
                        try judge(Self.reader(of: view, call, turn))
                    } catch {
                        return refused(error)
                    }
                    call.onLoop { if call.isFinished { answer.withdraw() } else { body(answer) } }
                }
            }
        }
    }

    /// Reads a state for a worker that judges it, which gives way before each document.
    private static func reader(of view: ReadView, _ call: any ServiceCall, _ turn: WorkerSlice) -> StateReader {
        StateReader(view) { () throws(Status) in
            turn.giveWay()
            try call.cancellation.check()
        }
    }
}

/// Decides whether a read may see a state. Fails with `WorkMeter.isHeavier` when that takes more than the reader may decode.
typealias ReadJudge = @Sendable (StateReader) throws(Status) -> Void

/// What a read answers with besides what it has read, when its view isn't held.
struct ReadAnswer: Sendable {
    let readTime: Timestamp
    let newTransaction: [UInt8]?
    let withdraw: @Sendable () -> Void

    init(_ grant: Database.ViewGrant) {
        readTime = grant.view.readTime
        newTransaction = grant.newTransaction
        withdraw = grant.undo
    }
}

/// Carries a view from the thread that made it to the loop that uses it; nobody else holds it then.
private final class GrantBox: @unchecked Sendable {
    let result: Result<Database.ViewGrant, Status>

    init(_ result: Result<Database.ViewGrant, Status>) {
        self.result = result
    }
}

/// The names of the documents of one database.
struct DocumentNames {
    private let root: String
    /// The collection of the last name: most lists are of one collection.
    private var collection: (prefix: [UInt8], name: String)?

    init(_ database: DatabaseName) {
        root = database.documentsRoot + "/"
    }

    mutating func name(key: [UInt8]) throws(Status) -> String {
        if let collection, let id = DocumentKey.id(key, inCollection: collection.prefix) { return collection.name + id }
        guard let path = DocumentKey.decode(key), let prefix = DocumentKey.collectionPrefix(of: key) else {
            throw Status(.dataLoss, "A document key can't be read.")
        }
        collection = (prefix, root + path.parent.string + "/")
        return root + path.string
    }
}
