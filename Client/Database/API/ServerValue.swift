public import Foundation

/// Values that the server computes when it applies a write.
public class ServerValue: NSObject {
    /// The server's time in milliseconds since 1970. All timestamps of one write are equal.
    public class func timestamp() -> [AnyHashable: Any] { [".sv": "timestamp"] }

    /// Adds to the existing number; without a number the value is the increment itself.
    public class func increment(_ delta: NSNumber) -> [AnyHashable: Any] { [".sv": ["increment": delta]] }
}
