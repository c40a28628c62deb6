import HearthModel
import HearthWire

/// Times as events have them.
package enum EventTime {
    /// RFC 3339 with a fixed number of digits of a second.
    /// - Parameter digits: from 1 to 6.
    package static func string(_ time: Timestamp, digits: Int) -> String {
        let microseconds = time.microseconds
        let seconds = microseconds >= 0 ? microseconds / 1_000_000 : (microseconds - 999_999) / 1_000_000
        let fraction = String(microseconds - seconds * 1_000_000 + 1_000_000).dropFirst().prefix(digits)
        return RFC3339.format(seconds: seconds, nanoseconds: 0).dropLast() + "." + fraction + "Z"
    }
}
