import HearthConcurrency
import HearthModel
import HearthEngine

/// Load metrics: workers' queues, long reads, and the memory that clients make the process hold.
package struct WorkloadMetrics: Sendable {
    let pool: WorkerPool
    let reads: LongReads
    let memory: ServerMemory

    package init(pool: WorkerPool, reads: LongReads, memory: ServerMemory) {
        self.pool = pool
        self.reads = reads
        self.memory = memory
    }

    func write(to string: inout MetricsWriter) {
        let (brief, short, long) = pool.statistics
        let groups = [("brief", brief), ("short", short), ("long", long)]
        let figures: [(String, MetricsWriter.Kind, String, (WorkerStatistics) -> Int)] = [
            ("hearth_worker_jobs_waiting", .gauge, "Jobs that wait for a worker.", { $0.waiting }),
            ("hearth_worker_jobs_running", .gauge, "Jobs that a worker runs.", { $0.running }),
            (
                "hearth_worker_jobs_refused_total", .counter, "Jobs rejected because too many of their client waited.",
                { $0.refused }
            ),
        ]
        for (name, kind, help, value) in figures {
            string.family(name, kind, help)
            for (group, statistics) in groups { string.sample(name, [("kind", group)], value(statistics)) }
        }
        string.family("hearth_worker_wait_seconds", .histogram, "Time that jobs have waited for a worker.")
        for (group, statistics) in groups {
            string.histogram(
                "hearth_worker_wait_seconds", [("kind", group)],
                bounds: WorkerStatistics.waitBounds.map { Double($0) / 1e9 }, statistics.waits,
                sum: Double(statistics.waitNanoseconds) / 1e9)
        }
        string.family("hearth_long_reads", .gauge, "Reads that hold a snapshot, and reads that wait to begin.")
        string.sample("hearth_long_reads", [("state", "open")], reads.activeCount)
        string.sample("hearth_long_reads", [("state", "waiting")], reads.waitingCount)
        string.family("hearth_held_bytes", .gauge, "Bytes that clients make the process hold, by kind.")
        string.sample("hearth_held_bytes", [("kind", "received")], memory.received.usedBytes)
        string.sample(
            "hearth_held_bytes", [("kind", "decoded")], memory.working.usedBytes)
        string.sample("hearth_held_bytes", [("kind", "sorted")], memory.sorting.usedBytes)
        string.sample("hearth_held_bytes", [("kind", "listened")], memory.listening.usedBytes)
        string.sample("hearth_held_bytes", [("kind", "unsent")], memory.listenersWaiting.usedBytes)
        // The former name, for one version.
        string.sample("hearth_held_bytes", [("kind", "untold")], memory.listenersWaiting.usedBytes)
        string.sample("hearth_held_bytes", [("kind", "windows")], memory.windows.usedBytes)
        string.sample("hearth_held_bytes", [("kind", "kept")], memory.cachedWindows.usedBytes)
        string.sample("hearth_held_bytes", [("kind", "read")], memory.databases.readSets.usedBytes)
        string.sample("hearth_held_bytes", [("kind", "committing")], memory.databases.commits.usedBytes)
        string.sample("hearth_held_bytes", [("kind", "unacknowledged")], memory.unacknowledged.usedBytes)
        string.sample("hearth_held_bytes", [("kind", "unread")], memory.unread.usedBytes)
        string.family("hearth_pooled_bytes", .gauge, "Bytes of the shared pool that these kinds use.")
        string.sample("hearth_pooled_bytes", [], memory.pool.usedBytes)
    }
}
