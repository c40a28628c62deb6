import HearthToolSupport
import Glibc

/// The bare disk: how long one page takes until it is durable.
///
/// The pages of a file of fixed length are overwritten one after another, as in a log. A growing file costs its file
/// system more than twice as much, and would be too easy a comparison.
struct DiskLatency {
    private static let page = [UInt8](repeating: 0x61, count: 4096)
    private static let pages = 1024

    let folder: String

    /// How long the disk beside a workload is looked at.
    private static let besideSeconds = 0.2

    /// Of the disk beside a workload.
    func figure(_ workload: String) throws(ToolFailure) -> [Figure] {
        let result = try measure(seconds: Self.besideSeconds)
        return [
            Figure(
                workload: workload, metric: Figure.diskP50, unit: "ms", value: result.percentile(0.5) / 1000,
                direction: .lowerIsBetter)
        ]
    }

    /// - Returns: the latencies of single writes.
    func measure(seconds: Double) throws(ToolFailure) -> LoadResult {
        let path = folder + "/file"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        if descriptor < 0 { throw OutputFile.failure(path) }
        defer {
            close(descriptor)
            unlink(path)
        }
        for number in 0..<Self.pages { try write(number, to: descriptor, path) }
        if fsync(descriptor) != 0 { throw OutputFile.failure(path) }
        var result = LoadResult()
        let watch = Stopwatch()
        while watch.seconds < seconds {
            let one = Stopwatch()
            try write(result.count % Self.pages, to: descriptor, path)
            if fdatasync(descriptor) != 0 { throw OutputFile.failure(path) }
            result.latenciesMicroseconds.append(UInt32(one.seconds * 1e6))
            result.count += 1
        }
        result.seconds = watch.seconds
        result.latenciesMicroseconds.sort()
        return result
    }

    private func write(_ number: Int, to descriptor: Int32, _ path: String) throws(ToolFailure) {
        let count = Self.page.count
        if pwrite(descriptor, Self.page, count, off_t(number * count)) != count { throw OutputFile.failure(path) }
    }
}
