import Dispatch
import HearthModel
import HearthCache
import Synchronization

/// Copies the log into the database on its own thread, because a copy waits for the disk.
///
/// It has its own connection to the same file (the layer "unix-excl" shares the log's index between them), and uses
/// only passive checkpoints: the engine's writes continue meanwhile. A copy that fails is retried after the next
/// transaction. Until it succeeds everything stays in the log, and a log that cannot grow fails the transaction.
final class CacheCheckpointer: @unchecked Sendable {
    private let path: String
    private let thresholdPages: Int
    private let queue = DispatchQueue(label: "hearth.cache.checkpoint")
    private let isScheduled = Mutex(false)
    // Only on the queue.
    private var database: CacheDatabase?
    private var isClosed = false

    init(path: String, thresholdPages: Int) {
        self.path = path
        self.thresholdPages = thresholdPages
    }

    /// Called after each commit.
    /// - Parameter pages: the log's length.
    func logGrew(to pages: Int) {
        guard pages >= thresholdPages else { return }
        let isFirst = isScheduled.withLock { scheduled in
            defer { scheduled = true }
            return !scheduled
        }
        if isFirst { queue.async { self.run() } }
    }

    /// Whether the engine must help, because the disk is slower than the writes.
    func isBehind(at pages: Int) -> Bool { pages >= 3 * thresholdPages }

    private func run() {
        isScheduled.withLock { $0 = false }
        if isClosed { return }
        do throws(Status) {
            if database == nil {
                let opened = try CacheDatabase(path: path)
                try opened.execute("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0")
                database = opened
            }
            try database?.checkpointBesideWriter()
        } catch {
            database?.close()
            database = nil
        }
    }

    /// Waits for a copy in progress.
    func settle() { queue.sync {} }

    func close() {
        queue.sync {
            isClosed = true
            database?.close()
            database = nil
        }
    }
}
