import HearthToolSupport

/// A target that is ready to be measured.
protocol BenchSession {
    func run(_ workload: Workload) throws(ToolFailure) -> [Figure]
    func stop()
}
