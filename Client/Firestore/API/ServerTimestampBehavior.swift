/// The value of a server timestamp before the server sets it.
public enum ServerTimestampBehavior: Int, Sendable {
    /// Null.
    case none = 0
    /// The local time of the write.
    case estimate = 1
    /// The previous value of the field; null when it had none.
    case previous = 2
}
