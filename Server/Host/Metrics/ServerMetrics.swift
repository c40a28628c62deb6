import HearthModel
import HearthNetwork
import HearthDocuments
import HearthTreeStorage

/// The metrics of `/metrics`, collected on request.
package struct ServerMetrics: Sendable {
    let requests: RequestMetrics
    let network: @Sendable () -> NetworkStatistics
    let databases: @Sendable () -> [Database]
    let trees: @Sendable () -> [TreeDatabase]
    package var workload: WorkloadMetrics?
    /// What other parts of the server add.
    package var further: [@Sendable (inout MetricsWriter) -> Void] = []
    let health: StorageHealth?
    /// The readers of change feeds, by database.
    package var changeReaders: @Sendable () -> [DatabaseName: Int] = { [:] }

    package init(
        requests: RequestMetrics, network: @escaping @Sendable () -> NetworkStatistics,
        databases: @escaping @Sendable () -> [Database], trees: @escaping @Sendable () -> [TreeDatabase] = { [] },
        health: StorageHealth? = nil
    ) {
        self.requests = requests
        self.network = network
        self.databases = databases
        self.trees = trees
        self.health = health
    }

    package func string() -> [UInt8] {
        var string = MetricsWriter()
        string.family("hearth_build_info", .gauge, "The version of the program, as a label.")
        string.sample("hearth_build_info", [("version", HearthVersion.string)], 1)
        writeProcess(to: &string)
        requests.write(to: &string)
        NetworkMetrics.write(network(), to: &string)
        workload?.write(to: &string)
        DatabaseMetrics.write(databases(), to: &string)
        DatabaseMetrics.write(readers: changeReaders(), to: &string)
        RealtimeMetrics.write(trees(), to: &string)
        StoreMetrics.write(databases(), trees(), failing: health?.failingCount ?? 0, to: &string)
        for write in further { write(&string) }
        return string.writer.bytes
    }

    private func writeProcess(to string: inout MetricsWriter) {
        string.family("process_resident_memory_bytes", .gauge, "Resident memory of the process.")
        string.sample("process_resident_memory_bytes", [], ProcessFigures.residentBytes ?? 0)
        string.family("process_cpu_seconds_total", .counter, "CPU time of the process.")
        string.sample("process_cpu_seconds_total", [], ProcessFigures.cpuSeconds)
    }
}
