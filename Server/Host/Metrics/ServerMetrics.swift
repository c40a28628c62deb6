import Glibc
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
    let health: StorageHealth?

    /// Databases that have their own label; further ones are added up under one label, because a client can create any
    /// number, and each label costs memory in the monitoring system.
    static let databaseLabelsMax = 100

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
        Self.write(network(), to: &string)
        workload?.write(to: &string)
        Self.write(databases(), to: &string)
        RealtimeMetrics.write(trees(), to: &string)
        StoreMetrics.write(databases(), trees(), failing: health?.failingCount ?? 0, to: &string)
        return string.writer.bytes
    }

    private func writeProcess(to string: inout MetricsWriter) {
        string.family("process_resident_memory_bytes", .gauge, "Resident memory of the process.")
        string.sample("process_resident_memory_bytes", [], ProcessFigures.residentBytes ?? 0)
        string.family("process_cpu_seconds_total", .counter, "CPU time of the process.")
        string.sample("process_cpu_seconds_total", [], ProcessFigures.cpuSeconds)
    }

    private static func write(_ network: NetworkStatistics, to string: inout MetricsWriter) {
        let figures: [(String, MetricsWriter.Kind, String, Int)] = [
            ("hearth_connections_open", .gauge, "Connections that are open.", network.connectionsOpen),
            ("hearth_connections_total", .counter, "Connections that were accepted.", network.connectionsAccepted),
            (
                "hearth_connections_refused_total", .counter, "Connections closed immediately: too many, or not TLS.",
                network.connectionsRefused
            ),
            ("hearth_streams_open", .gauge, "HTTP/2 streams that are open.", network.streamsOpen),
            ("hearth_received_bytes_total", .counter, "Bytes received.", network.bytesReceived),
            ("hearth_sent_bytes_total", .counter, "Bytes sent.", network.bytesSent),
            (
                "hearth_timeouts_total", .counter, "Connections and streams closed because they were too slow.",
                network.timeouts
            ),
            ("hearth_abuses_total", .counter, "Connections that exceeded a rate limit.", network.abuses),
            ("hearth_bad_requests_total", .counter, "Requests that violated the protocol.", network.badRequests),
            ("hearth_websockets_open", .gauge, "WebSockets that are open.", network.webSocketsOpen),
            ("hearth_websockets_total", .counter, "WebSockets that were opened.", network.webSocketsOpened),
            (
                "hearth_websocket_messages_received_total", .counter, "Messages received over WebSockets.",
                network.webSocketMessagesReceived
            ),
            (
                "hearth_websocket_messages_sent_total", .counter, "Messages sent over WebSockets.",
                network.webSocketMessagesSent
            ),
        ]
        for (name, kind, help, value) in figures {
            string.family(name, kind, help)
            string.sample(name, [], value)
        }
    }

    // MARK: Databases

    private static func write(_ databases: [Database], to string: inout MetricsWriter) {
        let sorted = databases.sorted { $0.name.string < $1.name.string }
        var rows = sorted.prefix(databaseLabelsMax).map { database in
            ([("project", database.name.project), ("database", database.name.database)], database.statistics)
        }
        if sorted.count > databaseLabelsMax {
            let rest = sorted.dropFirst(databaseLabelsMax).map(\.statistics)
            rows.append(([("project", "other"), ("database", "other")], rest.reduce(DatabaseStatistics(), sum)))
        }
        let figures: [(String, MetricsWriter.Kind, String, (DatabaseStatistics) -> Int?)] = [
            ("hearth_commits_total", .counter, "Commits that the writer has handled.", { $0.commits }),
            ("hearth_commit_failures_total", .counter, "Commits that failed because of the disk.", { $0.failures }),
            ("hearth_queued_commits", .gauge, "Commits that wait for the writer.", { $0.queuedCommits }),
            ("hearth_queued_commit_bytes", .gauge, "Bytes of commits that wait.", { $0.queuedBytes }),
            ("hearth_open_transactions", .gauge, "Transactions that are open.", { $0.openTransactions }),
            ("hearth_database_bytes", .gauge, "Disk space of the data, including its log.", { $0.sizeBytes }),
        ]
        for (name, kind, help, value) in figures {
            string.family(name, kind, help)
            for (labels, statistics) in rows {
                if let number = value(statistics) { string.sample(name, labels, number) }
            }
        }
        string.family("hearth_commit_group_size", .histogram, "Commits that shared one durable transaction.")
        for (labels, statistics) in rows {
            let bounds = (0..<max(0, statistics.groupSizes.count - 1)).map { Double(1 << $0) }
            string.histogram(
                "hearth_commit_group_size", labels, bounds: bounds, statistics.groupSizes,
                sum: Double(statistics.commits + statistics.failures))
        }
    }

    private static func sum(_ a: DatabaseStatistics, _ b: DatabaseStatistics) -> DatabaseStatistics {
        var sum = a
        sum.commits += b.commits
        sum.failures += b.failures
        sum.groups += b.groups
        sum.groupSizes = (0..<max(a.groupSizes.count, b.groupSizes.count)).map { index in
            (index < a.groupSizes.count ? a.groupSizes[index] : 0)
                + (index < b.groupSizes.count ? b.groupSizes[index] : 0)
        }
        sum.queuedCommits += b.queuedCommits
        sum.queuedBytes += b.queuedBytes
        sum.openTransactions += b.openTransactions
        if let bytes = b.sizeBytes { sum.sizeBytes = (sum.sizeBytes ?? 0) + bytes }
        return sum
    }
}

/// Figures of a process from the system.
package enum ProcessFigures {
    /// Resident memory of this process; nil where `/proc` does not exist.
    package static var residentBytes: Int? { residentBytes(process: "self") }

    /// - Parameter process: a process number, or `self`.
    package static func residentBytes(process: String) -> Int? {
        let string: [UInt8]?
        do { string = try TextFile.read("/proc/\(process)/statm") } catch { return nil }
        guard let string else { return nil }
        let fields = string.split(separator: UInt8(ascii: " "))
        guard fields.count > 1, let pages = Int(String(decoding: fields[1], as: UTF8.self)) else { return nil }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    /// User and system time of a process; nil when it does not exist.
    package static func processorSeconds(process: String) -> Double? {
        let string: [UInt8]?
        do { string = try TextFile.read("/proc/\(process)/stat") } catch { return nil }
        // The second field is the program's name in parentheses, which may contain any characters.
        guard let string, let end = string.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = string[(end + 1)...].split(separator: UInt8(ascii: " "))
        guard fields.count > 12, let user = Int(String(decoding: fields[11], as: UTF8.self)),
            let system = Int(String(decoding: fields[12], as: UTF8.self))
        else { return nil }
        return Double(user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    static var cpuSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
