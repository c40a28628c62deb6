public import Foundation

/// Values that the server works out when it applies a write.
public class ServerValue: NSObject {
    /// The server's time in milliseconds since 1970; of one write all are one instant.
    public class func timestamp() -> [AnyHashable: Any] { [".sv": "timestamp"] }

    /// Adds to the number that is there; becomes the number itself where none is.
    public class func increment(_ delta: NSNumber) -> [AnyHashable: Any] { [".sv": ["increment": delta]] }
}
