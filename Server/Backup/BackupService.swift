import HearthConcurrency
import HearthHost
import HearthModel

/// Makes backups, one at a time, each on a thread of its own that lets those that answer clients go first.
///
/// `@unchecked Sendable`: the monitor guards the fields below it.
package final class BackupService: @unchecked Sendable {
    private let source: BackupSource?
    private let log: Log
    private let monitor = Monitor()
    private var running: Cancellation?
    private var isStopping = false

    /// - Parameter source: nil for a server that keeps its data in memory.
    package init(_ source: BackupSource?, log: Log) {
        self.source = source
        self.log = log
    }

    private static let memory = Status.failedPrecondition(
        "This server keeps its data in memory, so there is nothing to back up. Start it with a data folder (--data).")
    private static let shutdown = Status.unavailable("The server is shutting down.")
    private static let busy = Status.resourceExhausted("A backup is under way; there is one at a time.")

    /// Makes a backup on a thread of its own.
    /// - Parameters:
    ///   - cancellation: ends it, after a moment.
    ///   - target: called when all images are open.
    ///   - done: called at the end, on that thread, or at once with why there is no backup.
    package func start(
        _ cancellation: Cancellation, _ target: @escaping @Sendable () throws(Status) -> any BackupTarget,
        _ done: @escaping @Sendable (Result<BackupManifest, Status>) -> Void
    ) {
        guard let source else { return done(.failure(Self.memory)) }
        let refusal = monitor.withLock { () -> Status? in
            if isStopping { return Self.shutdown }
            if running != nil { return Self.busy }
            running = cancellation
            return nil
        }
        if let refusal { return done(.failure(refusal)) }
        let thread = NamedThread.start("hearth-backup") { [self] in
            NamedThread.giveWay()
            let result = run(source, cancellation, target)
            ended()
            done(result)
        }
        if let thread { return thread.detach() }
        ended()
        done(.failure(.unavailable("The system cannot start another thread.")))
    }

    private func ended() {
        monitor.withLock {
            running = nil
            monitor.signal()
        }
    }

    private func run(
        _ source: BackupSource, _ cancellation: Cancellation,
        _ target: @Sendable () throws(Status) -> any BackupTarget
    ) -> Result<BackupManifest, Status> {
        let end = MonotonicTime.now.advanced(milliseconds: Limits.backupSecondsMax * 1000)
        var run = BackupRun(source) { () throws(Status) in
            try cancellation.check()
            if MonotonicTime.now >= end {
                throw Status(.deadlineExceeded, "A backup may take \(Limits.backupSecondsMax) seconds.")
            }
        }
        do throws(Status) {
            try run.run(to: target)
        } catch {
            return .failure(error)
        }
        if run.spreadMilliseconds > Limits.backupHoldMillisecondsMax {
            log.warning(
                "the databases of a backup are of moments that lie apart: the disk doesn't keep up with the writes",
                ("milliseconds", .integer(run.spreadMilliseconds)))
        }
        return .success(run.manifest)
    }

    /// Ends the backup under way, and waits for that.
    package func stop() {
        monitor.lock()
        isStopping = true
        running?.cancel()
        while running != nil { monitor.wait() }
        monitor.unlock()
    }
}
