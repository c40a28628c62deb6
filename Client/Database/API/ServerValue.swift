public import Foundation

/// Values that the server computes when it applies a write. Until it has answered, observers receive the client's
/// estimate.
public class ServerValue: NSObject {
    /// The server's time. All timestamps of one write are equal. The estimate is the local time, corrected by
    /// `.info/serverTimeOffset`.
    /// - Returns: a value for `setValue(_:)` and the other writes, also for a priority. The server stores milliseconds
    ///   since 1970 in UTC.
    public class func timestamp() -> [AnyHashable: Any] { [".sv": "timestamp"] }

    /// Adds to the number at the location. Where there is no number, the increment itself is stored. The server adds at
    /// once, so that no increment is lost, also of a client that was offline.
    /// - Parameter delta: an integer or a finite number, which may be negative. Anything else ends the program when it
    ///   is written.
    /// - Returns: a value for `setValue(_:)` and the other writes.
    public class func increment(_ delta: NSNumber) -> [AnyHashable: Any] { [".sv": ["increment": delta]] }
}
