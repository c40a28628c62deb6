@testable import HearthConcurrency
@testable import HearthHost
import HearthModel
import HearthDocuments
import Synchronization
import Testing

@testable import HearthFirestoreServer

struct DenialLogTests {
    /// Does not advance on its own.
    private final class StandingClock: Clock {
        let time = Mutex<Int64>(1_000_000_000_000)
        func now() -> Timestamp { Timestamp(microseconds: time.withLock { $0 }) }
        func monotonicNanoseconds() -> UInt64 { 0 }
    }

    @Test func aFloodOfDenialsWritesAFewLines() {
        let lines = Mutex<[String]>([])
        let clock = StandingClock()
        let log = Log(
            format: .string, level: .info, now: { clock.now() },
            write: { bytes in lines.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) } })
        let denials = DenialLog(log, clock: clock)
        for _ in 0..<1000 { denials.record { [("path", .string("c/d"))] } }
        #expect(lines.withLock { $0.count } == 20)
        clock.time.withLock { $0 += 1_000_000 }
        denials.record { [("path", .string("c/last"))] }
        let written = lines.withLock { $0 }
        #expect(written.count == 22)
        #expect(written[20].contains("denied more") && written[20].contains("980"))
        #expect(written[21].contains("c/last"))
    }
}
