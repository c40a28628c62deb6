import Glibc
import HearthModel
import Testing

@testable import HearthHost

/// A log whose reader may be stuck.
@Suite struct LogWriterTests {
    @Test func aReaderThatIsStuckCostsRecordsAndNobodyWaits() throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        // The pipe is full before the first record, so that the thread is stuck with it, however late it starts.
        let flags = fcntl(ends[1], F_GETFL)
        _ = fcntl(ends[1], F_SETFL, flags | O_NONBLOCK)
        var filling = 0
        while write(ends[1], [0], 1) == 1 { filling += 1 }
        _ = fcntl(ends[1], F_SETFL, flags)
        let writer = LogWriter(ends[1]) { Array("dropped=\($0)\n".utf8) }
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [UInt8(ascii: "\n")]
        // Returns although nobody reads: this is more than the pipe and the queue take.
        let count = 4 * Limits.logQueueBytesMax / line.count
        for _ in 0..<count { writer.write(line) }
        #expect(!writer.flush(milliseconds: 0))
        // The reader goes on, and hears how many there were: in one report, or in two when the thread began late.
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        var unread = filling
        while unread > 0 { unread -= max(0, read(ends[0], &piece, min(unread, piece.count))) }
        var string: [UInt8] = []
        var kept = 0
        var dropped = 0
        while kept + dropped < count {
            let read = read(ends[0], &piece, piece.count)
            guard read > 0 else { break }
            string += piece[..<read]
            let whole = string.lastIndex(of: UInt8(ascii: "\n")).map { string[...$0] } ?? []
            for written in whole.split(separator: UInt8(ascii: "\n")) {
                if let number = Self.dropped(written) { dropped += number } else { kept += 1 }
            }
            string.removeFirst(whole.count)
        }
        #expect(kept + dropped == count)
        #expect(dropped > 0 && kept > 0)
        #expect(string.isEmpty)
        #expect(writer.dropped == 0)
        writer.write(line)
        #expect(writer.flush(milliseconds: 60_000))
        #expect(read(ends[0], &piece, piece.count) == line.count)
        // The thread stays; its descriptor has to.
        close(ends[0])
    }

    /// The number of a line that says how many were dropped.
    private static func dropped(_ line: ArraySlice<UInt8>) -> Int? {
        let string = String(decoding: line, as: UTF8.self)
        return string.hasPrefix("dropped=") ? Int(string.dropFirst("dropped=".count)) : nil
    }

    @Test func aReaderThatIsGoneIsNoFault() {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        signal(SIGPIPE, SIG_IGN)
        let writer = LogWriter(ends[1]) { _ in [] }
        close(ends[0])
        for _ in 0..<100 { writer.write([1]) }
        #expect(writer.flush(milliseconds: 60_000))
    }
}
