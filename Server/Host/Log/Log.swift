import Glibc
import HearthModel
import HearthWire
import Synchronization

/// The program's log: one line per record, on standard error, for people or for programs.
///
///     2025-11-21T11:09:08.123Z info  request method=Commit code=OK ms=1.2
///     {"time":"2025-11-21T11:09:08.123Z","level":"info","message":"request","method":"Commit","code":"OK","ms":1.2}
///
/// Lines go to a `LogWriter`, whose thread writes them: logging never waits.
package final class Log: Sendable {
    package enum Format: String, Sendable, CaseIterable {
        /// Selected by `text`, the value of `--log-format`.
        case string = "text"
        case json
    }

    package enum Level: Int, Sendable, Comparable {
        case debug
        case info
        case warning
        case error

        var name: String {
            switch self {
            case .debug: "debug"
            case .info: "info"
            case .warning: "warning"
            case .error: "error"
            }
        }

        /// - Parameter name: as in a record.
        package init?(name: String) {
            guard let level = [Level.debug, .info, .warning, .error].first(where: { $0.name == name }) else {
                return nil
            }
            self = level
        }

        package static func < (lhs: Level, rhs: Level) -> Bool { lhs.rawValue < rhs.rawValue }
    }

    package enum Value: Sendable {
        case string(String)
        case integer(Int)
        case number(Double)
        case boolean(Bool)
    }

    package typealias Field = (name: StaticString, value: Value)

    private let format: Format
    private let level: Level
    private let now: @Sendable () -> Timestamp
    private let write: @Sendable ([UInt8]) -> Void
    private let writer: LogWriter?

    /// - Parameters:
    ///   - level: records below it are omitted.
    ///   - write: takes one complete line, on the thread that logs; nil writes to standard error.
    package init(
        format: Format = .string, level: Level = .info, now: @escaping @Sendable () -> Timestamp = { Log.wallClock() },
        write: (@Sendable ([UInt8]) -> Void)? = nil
    ) {
        self.format = format
        self.level = level
        self.now = now
        if let write {
            writer = nil
            self.write = write
        } else {
            let formatter = Log(format: format, level: level, now: now, write: { _ in })
            let writer = LogWriter(STDERR_FILENO) { count in
                formatter.line(
                    .warning, "records of the log were dropped: its reader is too slow", [("count", .integer(count))])
            }
            self.writer = writer
            self.write = { writer.write($0) }
        }
    }

    /// Waits until all records are written, or for a second when nobody reads them.
    package func flush() { writer?.flush() }

    package func isEnabled(_ level: Level) -> Bool { level >= self.level }

    package func debug(_ message: String, _ fields: Field...) { record(.debug, message, fields) }
    package func info(_ message: String, _ fields: Field...) { record(.info, message, fields) }
    package func warning(_ message: String, _ fields: Field...) { record(.warning, message, fields) }
    package func error(_ message: String, _ fields: Field...) { record(.error, message, fields) }

    package func record(_ level: Level, _ message: String, _ fields: [Field]) {
        guard level >= self.level else { return }
        write(line(level, message, fields))
    }

    private func line(_ level: Level, _ message: String, _ fields: [Field]) -> [UInt8] {
        switch format {
        case .string: string(level, message, fields)
        case .json: json(level, message, fields)
        }
    }

    // MARK: Lines

    /// To the millisecond, always with three digits, so that lines align and sort as strings.
    private func time() -> [UInt8] {
        let now = now()
        let milliseconds = now.nanoseconds / 1_000_000
        var bytes: [UInt8] = []
        RFC3339.append(seconds: now.seconds, nanoseconds: 0, to: &bytes)
        bytes.removeLast()
        bytes.append(UInt8(ascii: "."))
        for divisor: Int64 in [100, 10, 1] {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: milliseconds / divisor % 10))
        }
        bytes.append(UInt8(ascii: "Z"))
        return bytes
    }

    private func string(_ level: Level, _ message: String, _ fields: [Field]) -> [UInt8] {
        var writer = JSONWriter(time())
        writer.byte(UInt8(ascii: " "))
        writer.raw(level.name)
        for _ in level.name.utf8.count..<8 { writer.byte(UInt8(ascii: " ")) }
        // The message is a constant of the program; external data is in the fields, escaped.
        Self.plain(message, to: &writer)
        for field in fields {
            writer.byte(UInt8(ascii: " "))
            writer.raw(field.name)
            writer.byte(UInt8(ascii: "="))
            if case .string(let string) = field.value, Self.isWord(string) {
                writer.raw(string)
            } else {
                Self.value(field.value, &writer)
            }
        }
        writer.byte(UInt8(ascii: "\n"))
        return writer.bytes
    }

    private func json(_ level: Level, _ message: String, _ fields: [Field]) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"time\":\"")
        writer.bytes += time()
        writer.raw("\",\"level\":\"")
        writer.raw(level.name)
        writer.raw("\",\"message\":")
        writer.string(message)
        for field in fields {
            writer.raw(",\"")
            writer.raw(field.name)
            writer.raw("\":")
            Self.value(field.value, &writer)
        }
        writer.raw("}\n")
        return writer.bytes
    }

    private static func value(_ value: Value, _ writer: inout JSONWriter) {
        switch value {
        case .string(let string): writer.string(string)
        case .integer(let number): writer.integer(Int64(number))
        case .number(let number): writer.double(number)
        case .boolean(let flag): writer.bool(flag)
        }
    }

    private static func plain(_ string: String, to writer: inout JSONWriter) {
        for byte in string.utf8 { writer.byte(byte < 0x20 ? UInt8(ascii: " ") : byte) }
    }

    /// Whether a string needs no quotes.
    private static func isWord(_ string: String) -> Bool {
        !string.isEmpty
            && string.utf8.allSatisfy { byte in
                byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "=")
                    && byte != UInt8(ascii: "\\")
            }
    }

    // MARK: Defaults

    package static func wallClock() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }
}
