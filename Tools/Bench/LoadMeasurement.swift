import HearthToolSupport

/// Runs a load for the set time, and reports rate, latencies and the server's CPU time.
struct LoadMeasurement {
    private let seconds: Double
    private let warmUpSeconds: Double
    private let answerSeconds: Double

    /// The maximum duration of a run that is prolonged for a slow server.
    private static let secondsMax = 60.0
    /// The minimum number of answers on each stream in a run.
    private static let answersMin = 3.0

    init(_ settings: BenchSettings, warmUpSeconds: Double = 1, answerSeconds: Double = 0) {
        seconds = settings.seconds
        self.warmUpSeconds = min(warmUpSeconds, warmUpSeconds * settings.seconds)
        self.answerSeconds = answerSeconds
    }

    /// - Parameters:
    ///   - serverSeconds: the server's CPU time up to now; nil when it is not known.
    ///   - load: runs until the bound.
    func run(
        _ workload: String, _ generator: LoadGenerator, serverSeconds: () -> Double?,
        _ load: (LoadBound) throws(ToolFailure) -> LoadResult
    ) throws(ToolFailure) -> [Figure] {
        // A server that is busy with all streams gives each its answer after this time.
        let round = answerSeconds * Double(generator.connections * generator.streams)
        let seconds = max(seconds, min(round * Self.answersMin, Self.secondsMax))
        let warmUp = max(warmUpSeconds, min(round, Self.secondsMax / Self.answersMin))
        let before = serverSeconds()
        let result = try load(.seconds(seconds, warmUp: warmUp))
        let after = serverSeconds()
        if result.errors > result.count / 100 {
            throw ToolFailure(.failed, "\(workload): \(result.errors) requests failed: \(result.firstError ?? "")")
        }
        return result.figures(workload) + result.costs(workload, before, after)
    }
}
