import HearthConcurrency
import HearthModel
import Synchronization
import Testing

@testable import HearthHost

@Suite struct LogTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func append(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
    }

    private func logged(_ format: Log.Format, level: Log.Level = .info, _ body: (Log) -> Void) -> [String] {
        let lines = Lines()
        let time = Timestamp(microseconds: 1_763_723_348_007_900)
        body(Log(format: format, level: level, now: { time }, write: { lines.append($0) }))
        return lines.all
    }

    @Test func recordsForPeople() {
        let lines = logged(.string) { log in
            log.info("request", ("method", .string("Commit")), ("ms", .number(1.5)), ("reason", .string("a \"b\"\nc")))
            log.error("two\nlines", ("n", .integer(-3)), ("empty", .string("")), ("ok", .boolean(true)))
        }
        #expect(
            lines == [
                "2025-11-21T11:09:08.007Z info    request method=Commit ms=1.5 reason=\"a \\\"b\\\"\\nc\"\n",
                "2025-11-21T11:09:08.007Z error   two lines n=-3 empty=\"\" ok=true\n",
            ])
    }

    @Test func aBrokenInvariantIsARecordWithItsStack() {
        let lines = logged(.string) { BrokenInvariants(log: $0).note(BrokenInvariant("water flows downhill")) }
        #expect(lines.count == 1)
        let start =
            "2025-11-21T11:09:08.007Z error   a condition of the program does not hold; a connection or a request"
        #expect(lines[0].hasPrefix(start + " ended condition=\"water flows downhill\" stack=\""))
        // The addresses of frames.
        #expect(lines[0].split(separator: " < ").count > 2 && lines[0].contains("[0x"))
    }

    @Test func jsonForPrograms() {
        let lines = logged(.json) { $0.warning("a \"b\"", ("path", .string("x\u{1}")), ("n", .integer(2))) }
        #expect(
            lines == [
                #"{"time":"2025-11-21T11:09:08.007Z","level":"warning","message":"a \"b\"","path":"x\u0001","n":2}"#
                    + "\n"
            ])
    }

    @Test func recordsBelowTheLevelAreOmitted() {
        #expect(
            logged(.string, level: .warning) { log in
                log.debug("a"); log.info("b"); log.warning("c")
            }.count == 1)
    }
}
