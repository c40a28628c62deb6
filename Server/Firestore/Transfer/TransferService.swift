import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthExport
import HearthModel

/// Runs exports and imports, few at a time, each on a thread of its own that lets those that answer clients go first.
///
/// `@unchecked Sendable`: the monitor guards the fields below it.
package final class TransferService: @unchecked Sendable {
    private let longReads: LongReads
    private let clock: any Clock
    private let monitor = Monitor()
    private var running: [ObjectIdentifier: TransferControl] = [:]
    private var isStopping = false

    package init(longReads: LongReads, clock: any Clock = SystemClock()) {
        self.longReads = longReads
        self.clock = clock
    }

    private static let shutdown = Status.unavailable("The server is shutting down.")
    private static let busy = Status.resourceExhausted(
        "\(Limits.transfersMax) exports and imports are under way, which is the limit.")

    /// An export, for callers with a thread of their own.
    package func exportJob(_ database: Database, _ options: ExportJob.Options) -> ExportJob {
        ExportJob(database, options, longReads: longReads, clock: clock)
    }

    /// Begins an export.
    /// - Parameter done: called once at the end, on the export's thread.
    /// - Throws: RESOURCE_EXHAUSTED when too many are under way.
    package func export(
        _ database: Database, _ options: ExportJob.Options, _ control: TransferControl,
        _ done: @escaping @Sendable (Result<ExportJob.Outcome, Status>) -> Void
    ) throws(Status) {
        let job = exportJob(database, options)
        try start(control) { done(Result { () throws(Status) in try job.run(control) }) }
    }

    /// Begins an import.
    /// - Parameter done: called once at the end, on the import's thread.
    /// - Throws: RESOURCE_EXHAUSTED when too many are under way.
    package func importFolder(
        _ folder: ExportFolder, to database: Database, _ options: ImportJob.Options, _ control: TransferControl,
        _ done: @escaping @Sendable (Result<ImportJob.Outcome, Status>) -> Void
    ) throws(Status) {
        let job = ImportJob(folder, to: database, options)
        try start(control) { done(Result { () throws(Status) in try job.run(control) }) }
    }

    private func start(_ control: TransferControl, _ body: @escaping @Sendable () -> Void) throws(Status) {
        let id = ObjectIdentifier(control)
        let refusal = monitor.withLock { () -> Status? in
            if isStopping { return Self.shutdown }
            if running.count >= Limits.transfersMax { return Self.busy }
            running[id] = control
            return nil
        }
        if let refusal { throw refusal }
        let thread = NamedThread.start("hearth-transfer") { [self] in
            NamedThread.giveWay()
            body()
            ended(id)
        }
        if let thread { return thread.detach() }
        ended(id)
        throw .unavailable("The system cannot start another thread.")
    }

    private func ended(_ id: ObjectIdentifier) {
        monitor.withLock {
            running[id] = nil
            monitor.signal()
        }
    }

    /// Ends what is under way, which fails with UNAVAILABLE, and waits for that.
    package func stop() {
        monitor.lock()
        isStopping = true
        for control in running.values { control.stop(because: Self.shutdown) }
        while !running.isEmpty { monitor.wait() }
        monitor.unlock()
    }
}
