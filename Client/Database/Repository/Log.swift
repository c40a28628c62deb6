import Foundation
import HearthApp

/// The library's log on standard error: warnings always, details after `Database.setLoggingEnabled(true)`.
enum Log {
    private static let isVerbose = Locked(false)

    static func setVerbose(_ verbose: Bool) { isVerbose.with { $0 = verbose } }

    static func debug(_ message: @autoclosure () -> String) {
        if isVerbose.with({ $0 }) { write("debug", message()) }
    }

    static func warning(_ message: String) { write("warning", message) }

    private static func write(_ level: String, _ message: String) {
        FileHandle.standardError.write(Data("[FirebaseDatabase] \(level): \(message)\n".utf8))
    }
}
