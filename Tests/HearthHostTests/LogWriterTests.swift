import Glibc
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthHost

/// A log whose reader does not read.
@Suite struct LogWriterTests {
    @Test func aBlockedReaderLosesRecordsAndBlocksNoWriter() throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        // The pipe is full before the first record, so that the thread blocks on it, however late it starts.
        let flags = fcntl(ends[1], F_GETFL)
        _ = fcntl(ends[1], F_SETFL, flags | O_NONBLOCK)
        var filling = 0
        while write(ends[1], [0], 1) == 1 { filling += 1 }
        _ = fcntl(ends[1], F_SETFL, flags)
        let writer = LogWriter(ends[1]) { Array("dropped=\($0)\n".utf8) }
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 999) + [UInt8(ascii: "\n")]
        // Returns although nobody reads: this is more than the pipe and the queue hold.
        let count = 4 * Limits.logQueueBytesMax / line.count
        for _ in 0..<count { writer.write(line) }
        #expect(!writer.flush(milliseconds: 0))
        // The reader continues, and gets the number of dropped lines: in one report, or in two when the thread began
        // late.
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        var unread = filling
        while unread > 0 { unread -= max(0, read(ends[0], &piece, min(unread, piece.count))) }
        var string: [UInt8] = []
        var received = 0
        var dropped = 0
        while received + dropped < count {
            let read = read(ends[0], &piece, piece.count)
            guard read > 0 else { break }
            string += piece[..<read]
            let whole = string.lastIndex(of: UInt8(ascii: "\n")).map { string[...$0] } ?? []
            for written in whole.split(separator: UInt8(ascii: "\n")) {
                if let number = Self.dropped(written) { dropped += number } else { received += 1 }
            }
            string.removeFirst(whole.count)
        }
        #expect(received + dropped == count)
        #expect(dropped > 0 && received > 0)
        #expect(string.isEmpty)
        #expect(writer.dropped == 0)
        writer.write(line)
        #expect(writer.flush(milliseconds: Patience.milliseconds))
        #expect(read(ends[0], &piece, piece.count) == line.count)
        // The thread continues to run, so its descriptor must stay open.
        close(ends[0])
    }

    /// The number of dropped lines in a report.
    private static func dropped(_ line: ArraySlice<UInt8>) -> Int? {
        let string = String(decoding: line, as: UTF8.self)
        return string.hasPrefix("dropped=") ? Int(string.dropFirst("dropped=".count)) : nil
    }

    @Test func aClosedReaderIsIgnored() {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        signal(SIGPIPE, SIG_IGN)
        let writer = LogWriter(ends[1]) { _ in [] }
        close(ends[0])
        for _ in 0..<100 { writer.write([1]) }
        #expect(writer.flush(milliseconds: Patience.milliseconds))
    }
}
