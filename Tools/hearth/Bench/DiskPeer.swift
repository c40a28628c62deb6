import Glibc

/// The bare disk: how long one small write takes until it is durable.
struct DiskPeer: BenchSession {
    private let settings: BenchSettings
    private let folder: String

    init(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) {
        self.settings = settings
        folder = housekeeping.folder("disk")
    }

    func stop() {}

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        let path = folder + "/file"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        if descriptor < 0 { throw BenchFile.failure(path) }
        defer {
            close(descriptor)
            unlink(path)
        }
        let bytes = [UInt8](repeating: 0x61, count: 4096)
        var microseconds: [UInt32] = []
        let watch = Stopwatch()
        while watch.seconds < min(settings.seconds, 2) {
            let one = Stopwatch()
            guard write(descriptor, bytes, bytes.count) == bytes.count, fdatasync(descriptor) == 0 else {
                throw BenchFile.failure(path)
            }
            microseconds.append(UInt32(one.seconds * 1e6))
        }
        var result = LoadResult()
        result.count = microseconds.count
        result.seconds = watch.seconds
        result.latenciesMicroseconds = microseconds.sorted()
        return result.figures(workload.name)
    }
}
