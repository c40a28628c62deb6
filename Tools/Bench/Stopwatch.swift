import Glibc

/// Time since it was made.
struct Stopwatch {
    private let start = Stopwatch.now()

    var seconds: Double { Double(Self.now() - start) / 1e9 }

    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
