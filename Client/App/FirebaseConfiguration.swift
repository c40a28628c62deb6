/// The level of the libraries' messages on standard error: a message is written when its level is at most the set one.
public enum FirebaseLoggerLevel: Int, Sendable {
    /// Errors. These libraries report errors to the program, and write none.
    case error = 3
    /// Warnings, for example that the server cannot be reached.
    case warning = 4
    /// The same as warnings. The default.
    case notice = 5
    /// The same as warnings.
    case info = 6
    /// Details, as after `Firestore.enableLogging(true)` and `Database.setLoggingEnabled(true)`.
    case debug = 7

    /// The lowest level.
    public static let min = FirebaseLoggerLevel.error
    /// The highest level.
    public static let max = FirebaseLoggerLevel.debug
}

/// What concerns all apps of the program.
public final class FirebaseConfiguration: Sendable {
    /// The only instance.
    public static let shared = FirebaseConfiguration()

    private let level = Locked(FirebaseLoggerLevel.notice)

    private init() {}

    /// Sets the level of the messages of both products. Call it before `FirebaseApp.configure()`.
    /// - Parameter loggerLevel: the level.
    public func setLoggerLevel(_ loggerLevel: FirebaseLoggerLevel) { level.with { $0 = loggerLevel } }

    /// The level of the messages of both products.
    /// - Returns: the level; `notice` if none was set.
    public func loggerLevel() -> FirebaseLoggerLevel { level.with { $0 } }

    /// Whether messages of a level are written.
    package func writes(_ messageLevel: FirebaseLoggerLevel) -> Bool { messageLevel.rawValue <= loggerLevel().rawValue }
}
