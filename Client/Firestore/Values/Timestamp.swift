public import Foundation
internal import HearthModel

/// A time, counted from 1970-01-01T00:00:00Z, in the years 1 to 9999.
///
/// Firestore stores microseconds: finer digits are truncated when a timestamp is written.
public final class Timestamp: Sendable {
    /// Seconds since 1970-01-01T00:00:00Z; negative before.
    public let seconds: Int64
    /// Nanoseconds within the second: 0 to 999,999,999.
    public let nanoseconds: Int32

    /// The program ends for values out of range.
    /// - Parameters:
    ///   - seconds: since 1970-01-01T00:00:00Z, in the years 1 to 9999.
    ///   - nanoseconds: 0 to 999,999,999, counted forwards also before 1970.
    public init(seconds: Int64, nanoseconds: Int32) {
        orTrap { () throws(Status) in try Self.validate(seconds, nanoseconds) }
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// The nearest timestamp to a date. The program ends for a date outside the years 1 to 9999.
    /// - Parameter date: a date in the years 1 to 9999.
    public convenience init(date: Date) {
        let (seconds, nanoseconds) = orTrap { () throws(Status) in try Self.parts(of: date) }
        self.init(seconds: seconds, nanoseconds: nanoseconds)
    }

    /// The present time of the system clock.
    public convenience init() { self.init(date: Date()) }

    public required init(from decoder: any Swift.Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let seconds = try container.decode(Int64.self, forKey: .seconds)
        let nanoseconds = try container.decode(Int32.self, forKey: .nanoseconds)
        do {
            try Self.validate(seconds, nanoseconds)
        } catch {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: error.message))
        }
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    convenience init(_ model: ModelTimestamp) {
        self.init(seconds: model.seconds, nanoseconds: Int32(model.nanoseconds))
    }

    /// The nearest `Date`.
    /// - Returns: the date. Its precision is about 100 nanoseconds.
    @discardableResult
    public func dateValue() -> Date {
        // Computed from 2001, as `Date` counts: a sum from 1970 would lose twice as much precision.
        let whole = Double(seconds) - Date.timeIntervalBetween1970AndReferenceDate
        return Date(timeIntervalSinceReferenceDate: whole + Double(nanoseconds) / 1_000_000_000)
    }

    /// The order of two timestamps.
    /// - Parameter other: the timestamp to compare with.
    /// - Returns: `orderedAscending` when this one is earlier, `orderedDescending` when it is later, otherwise
    ///   `orderedSame`.
    @discardableResult
    public func compare(_ other: Timestamp) -> ComparisonResult {
        if self == other { return .orderedSame }
        return (seconds, nanoseconds) < (other.seconds, other.nanoseconds) ? .orderedAscending : .orderedDescending
    }

    static func validate(_ seconds: Int64, _ nanoseconds: Int32) throws(Status) {
        guard (0..<1_000_000_000).contains(nanoseconds) else {
            throw .invalidArgument("Timestamp nanoseconds out of range: \(nanoseconds), expected 0 to 999999999.")
        }
        guard (ModelTimestamp.secondsMin...ModelTimestamp.secondsMax).contains(seconds) else {
            throw .invalidArgument(
                "Timestamp seconds out of range: \(seconds), expected a time between the years 1 and 9999.")
        }
    }

    /// The nearest nanosecond. A `Date` is a binary fraction of seconds since 2001 and has limited precision.
    static func parts(of date: Date) throws(Status) -> (seconds: Int64, nanoseconds: Int32) {
        let whole = date.timeIntervalSinceReferenceDate.rounded(.down)
        guard whole.isFinite, abs(whole) < 1e12 else {
            throw .invalidArgument("Timestamp seconds out of range: expected a time between the years 1 and 9999.")
        }
        var seconds = Int64(whole) + Int64(Date.timeIntervalBetween1970AndReferenceDate)
        var nanoseconds = Int32(((date.timeIntervalSinceReferenceDate - whole) * 1_000_000_000).rounded())
        if nanoseconds == 1_000_000_000 {
            seconds += 1
            nanoseconds = 0
        }
        try validate(seconds, nanoseconds)
        return (seconds, nanoseconds)
    }

    /// Truncated to microseconds.
    var model: ModelTimestamp { ModelTimestamp(microseconds: seconds * 1_000_000 + Int64(nanoseconds) / 1000) }

    /// Truncated to microseconds. A value less than the error of a `Date` (about 100 nanoseconds) below a whole
    /// microsecond is rounded up to it, so that a time that was read as a `Date` is written back unchanged.
    static func model(of date: Date) throws(Status) -> ModelTimestamp {
        let (seconds, nanoseconds) = try parts(of: date)
        return ModelTimestamp(microseconds: seconds * 1_000_000 + (Int64(nanoseconds) + 250) / 1000)
    }
}

extension Timestamp: Hashable, Comparable, Codable, CustomStringConvertible {
    private enum CodingKeys: String, CodingKey { case seconds, nanoseconds }

    public static func == (left: Timestamp, right: Timestamp) -> Bool {
        left.seconds == right.seconds && left.nanoseconds == right.nanoseconds
    }

    /// Whether a timestamp is earlier than another one.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(seconds)
        hasher.combine(nanoseconds)
    }

    public func encode(to encoder: any Swift.Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(seconds, forKey: .seconds)
        try container.encode(nanoseconds, forKey: .nanoseconds)
    }

    public var description: String { "Timestamp(seconds: \(seconds), nanoseconds: \(nanoseconds))" }
}
