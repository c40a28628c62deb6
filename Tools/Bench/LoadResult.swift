/// The results of a run.
struct LoadResult: Sendable {
    var count = 0
    var errors = 0
    var firstError: String?
    var seconds = 0.0
    /// Answers of the whole run, with those before and after the time that counts.
    var all = 0
    /// CPU time of the generator in the whole run.
    var generatorSeconds: Double?
    /// Sorted at the end of the run.
    var latenciesMicroseconds: [UInt32] = []

    var rate: Double { seconds > 0 ? Double(count) / seconds : 0 }

    /// - Parameter share: 0.5 for the median.
    func percentile(_ share: Double) -> Double {
        guard !latenciesMicroseconds.isEmpty else { return 0 }
        let index = min(latenciesMicroseconds.count - 1, Int(Double(latenciesMicroseconds.count) * share))
        return Double(latenciesMicroseconds[index])
    }

    mutating func add(_ other: LoadResult) {
        count += other.count
        errors += other.errors
        firstError = firstError ?? other.firstError
        latenciesMicroseconds += other.latenciesMicroseconds
    }
}
