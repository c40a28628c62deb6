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

    func run(
        _ workload: String, _ generator: LoadGenerator, process: ChildProcess?,
        _ message: @escaping LoadGenerator.MessageMaker
    ) throws(ToolFailure) -> [Figure] {
        // A server that is busy with all streams gives each its answer after this time.
        let round = answerSeconds * Double(generator.connections * generator.streams)
        let seconds = max(seconds, min(round * Self.answersMin, Self.secondsMax))
        let warmUp = max(warmUpSeconds, min(round, Self.secondsMax / Self.answersMin))
        let before = process?.processorSeconds
        let result = try generator.run(.seconds(seconds, warmUp: warmUp), message)
        let after = process?.processorSeconds
        if result.errors > result.count / 100 {
            throw ToolFailure(.failed, "\(workload): \(result.errors) requests failed: \(result.firstError ?? "")")
        }
        var figures = result.figures(workload)
        if let before, let after {
            // The CPU time includes the warm-up, so the count must, too.
            let each = (after - before) / (result.rate * (seconds + warmUp))
            figures.append(
                Figure(
                    workload: workload, metric: "server cpu", unit: "µs", value: each * 1e6,
                    direction: .lowerIsBetter))
        }
        return figures
    }
}
