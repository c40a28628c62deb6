import HearthApp
import HearthModel

/// The library's log on standard error: warnings, and details after `Database.setLoggingEnabled(true)`, unless the
/// program set another level (`FirebaseConfiguration`).
enum Log {
    private static let isVerbose = Locked(false)

    static func setVerbose(_ verbose: Bool) { isVerbose.with { $0 = verbose } }

    static func debug(_ message: @autoclosure () -> String) {
        if isVerbose.with({ $0 }) || FirebaseConfiguration.shared.writes(.debug) { write("debug", message()) }
    }

    static func warning(_ message: String) {
        if FirebaseConfiguration.shared.writes(.warning) { write("warning", message) }
    }

    private static func write(_ level: String, _ message: String) {
        StandardStream.error("[FirebaseDatabase] \(level): \(message)")
    }
}
