import HearthToolSupport

/// The bare disk as a peer of single commits.
struct DiskPeer: BenchSession {
    private let settings: BenchSettings
    private let disk: DiskLatency

    private static let secondsMax = 2.0

    init(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) {
        self.settings = settings
        disk = DiskLatency(folder: housekeeping.folder("disk"))
    }

    func stop() {}

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        try disk.measure(seconds: min(settings.seconds, Self.secondsMax)).figures(workload.name)
    }
}
