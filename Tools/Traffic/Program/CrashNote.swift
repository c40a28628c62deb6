import Glibc
import Synchronization

/// Says the seed when the process ends by a signal: a trap of the code under test.
enum CrashNote {
    private static let seed = Atomic<UInt64>(0)

    static func set(_ value: UInt64) { seed.store(value, ordering: .relaxed) }

    static func install() {
        for signal in [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE] {
            Glibc.signal(signal) { signal in
                // Only what a signal handler may do: no allocation.
                withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 80) { buffer in
                    var count = 0
                    for byte in "traffic: the process ends, seed ".utf8 {
                        buffer[count] = byte
                        count += 1
                    }
                    var divisor: UInt64 = 10_000_000_000_000_000_000
                    let value = CrashNote.seed.load(ordering: .relaxed)
                    while divisor > max(1, value) { divisor /= 10 }
                    while divisor > 0 {
                        buffer[count] = UInt8(ascii: "0") + UInt8(value / divisor % 10)
                        count += 1
                        divisor /= 10
                    }
                    buffer[count] = UInt8(ascii: "\n")
                    _ = write(2, buffer.baseAddress, count + 1)
                }
                Glibc.signal(signal, SIG_DFL)
                raise(signal)
            }
        }
    }
}
