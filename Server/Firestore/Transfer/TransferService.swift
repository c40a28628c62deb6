import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthExport
import HearthModel

/// Runs exports, imports and bulk deletions, few at a time, each on a thread of its own that lets those that answer clients
/// go first.
///
/// `@unchecked Sendable`: the monitor guards the fields below it.
package final class TransferService: @unchecked Sendable {
    package enum Kind: Sendable {
        /// An export or import.
        case transfer
        case deletion

        fileprivate var limit: Int { self == .transfer ? Limits.transfersMax : Limits.deletionsMax }

        fileprivate var busy: Status {
            let name = self == .transfer ? "exports and imports" : "bulk deletions"
            return .resourceExhausted("\(limit) \(name) are under way, which is the limit.")
        }
    }

    private let longReads: LongReads
    private let clock: any Clock
    private let monitor = Monitor()
    private var running: [ObjectIdentifier: (control: TransferControl, kind: Kind)] = [:]
    /// Those of `running` that only report their end: who gets that may begin another one.
    private var reporting: Set<ObjectIdentifier> = []
    private var isStopping = false

    package init(longReads: LongReads, clock: any Clock = SystemClock()) {
        self.longReads = longReads
        self.clock = clock
    }

    private static let shutdown = Status.unavailable("The server is shutting down.")

    /// An export, for callers with a thread of their own.
    package func exportJob(_ database: Database, _ options: ExportJob.Options) -> ExportJob {
        ExportJob(database, options, longReads: longReads, clock: clock)
    }

    /// Counts what is about to begin, until `leave`, or the end of `run`.
    /// - Throws: RESOURCE_EXHAUSTED when too many of its kind are under way.
    package func enter(_ control: TransferControl, as kind: Kind = .transfer) throws(Status) {
        let refusal = monitor.withLock { () -> Status? in
            if isStopping { return Self.shutdown }
            let count = running.count { $0.value.kind == kind && !reporting.contains($0.key) }
            if count >= kind.limit { return kind.busy }
            running[ObjectIdentifier(control)] = (control, kind)
            return nil
        }
        if let refusal { throw refusal }
    }

    /// The one that was counted does not begin.
    package func leave(_ control: TransferControl) {
        monitor.withLock {
            running[ObjectIdentifier(control)] = nil
            reporting.remove(ObjectIdentifier(control))
            monitor.signal()
        }
    }

    /// Runs what was counted.
    /// - Parameter done: called once at the end, on the thread of `body`, or on this one when there cannot be one.
    package func run<Outcome>(
        _ control: TransferControl, _ body: @escaping @Sendable () throws(Status) -> Outcome,
        _ done: @escaping @Sendable (Result<Outcome, Status>) -> Void
    ) {
        let thread = NamedThread.start("hearth-transfer") { [self] in
            NamedThread.giveWay()
            let result = Result { () throws(Status) in try body() }
            _ = monitor.withLock { reporting.insert(ObjectIdentifier(control)) }
            done(result)
            leave(control)
        }
        if let thread { return thread.detach() }
        done(.failure(.unavailable("The system cannot start another thread.")))
        leave(control)
    }

    /// Counts and begins an export.
    /// - Parameter done: called once at the end, on the export's thread.
    /// - Throws: RESOURCE_EXHAUSTED when too many are under way.
    package func export(
        _ database: Database, _ options: ExportJob.Options, _ control: TransferControl,
        _ done: @escaping @Sendable (Result<ExportJob.Outcome, Status>) -> Void
    ) throws(Status) {
        let job = exportJob(database, options)
        try enter(control)
        run(control, { () throws(Status) in try job.run(control) }, done)
    }

    /// Counts and begins an import.
    /// - Parameter done: called once at the end, on the import's thread.
    /// - Throws: RESOURCE_EXHAUSTED when too many are under way.
    package func importFolder(
        _ folder: ExportFolder, to database: Database, _ options: ImportJob.Options, _ control: TransferControl,
        _ done: @escaping @Sendable (Result<ImportJob.Outcome, Status>) -> Void
    ) throws(Status) {
        let job = ImportJob(folder, to: database, options)
        try enter(control)
        run(control, { () throws(Status) in try job.run(control) }, done)
    }

    /// Counts and begins a bulk deletion.
    /// - Parameter done: called once at the end, on the deletion's thread.
    /// - Throws: RESOURCE_EXHAUSTED when too many are under way.
    func delete(
        _ deletion: BulkDelete, _ control: TransferControl, _ done: @escaping @Sendable (Result<Void, Status>) -> Void
    ) throws(Status) {
        try enter(control, as: .deletion)
        run(control, { () throws(Status) in try deletion.run(control) }, done)
    }

    /// Ends what is under way, which fails with UNAVAILABLE, and waits for that.
    package func stop() {
        monitor.lock()
        isStopping = true
        for (control, _) in running.values { control.stop(because: Self.shutdown) }
        while !running.isEmpty { monitor.wait() }
        monitor.unlock()
    }
}
