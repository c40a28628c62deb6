@testable import HearthConcurrency
@testable import HearthHost
import HearthModel
import HearthDocuments
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthFirestoreServer

struct DenialLogTests {
    @Test func aFloodOfDenialsWritesAFewLines() {
        let lines = Mutex<[String]>([])
        let clock = StoppedClock()
        let log = Log(
            format: .string, level: .info, now: { clock.now() },
            write: { bytes in lines.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) } })
        let denials = DenialLog(log, clock: clock)
        for _ in 0..<1000 { denials.record { [("path", .string("c/d"))] } }
        #expect(lines.withLock { $0.count } == 20)
        clock.advance(seconds: 1)
        denials.record { [("path", .string("c/last"))] }
        let written = lines.withLock { $0 }
        #expect(written.count == 22)
        #expect(written[20].contains("denied more") && written[20].contains("980"))
        #expect(written[21].contains("c/last"))
    }
}
