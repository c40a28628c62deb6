/// An instant in whole microseconds since 1970-01-01T00:00:00Z, the precision of Firestore's timestamps.
///
/// The range is that of google.protobuf.Timestamp: years 1 to 9999.
@usableFromInline package struct Timestamp: Hashable, Comparable, Sendable {
    @usableFromInline package var microseconds: Int64

    /// 0001-01-01T00:00:00Z, in seconds since 1970.
    @usableFromInline package static let secondsMin: Int64 = -62_135_596_800
    /// 9999-12-31T23:59:59Z, in seconds since 1970.
    @usableFromInline package static let secondsMax: Int64 = 253_402_300_799

    /// The microseconds since 1970 of years 1 to 9999.
    package static let microsecondsRange = secondsMin * 1_000_000...secondsMax * 1_000_000 + 999_999

    @inlinable
    package init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// The instant of a google.protobuf.Timestamp; digits below a microsecond are rounded towards the past. Nil outside
    /// of years 1 to 9999, or when the nanoseconds are not in 0..<1,000,000,000.
    @inlinable
    package init?(seconds: Int64, nanoseconds: Int64) {
        guard seconds >= Self.secondsMin, seconds <= Self.secondsMax, nanoseconds >= 0, nanoseconds < 1_000_000_000
        else { return nil }
        microseconds = seconds * 1_000_000 + nanoseconds / 1000
    }

    /// Whole seconds since 1970, rounded towards the past.
    @inlinable
    package var seconds: Int64 {
        let quotient = microseconds / 1_000_000
        return microseconds % 1_000_000 < 0 ? quotient - 1 : quotient
    }

    /// Nanoseconds within the second: 0..<1,000,000,000, a multiple of 1,000.
    @inlinable
    package var nanoseconds: Int64 {
        // Not by the seconds: their microseconds are less than the least number when that is the instant.
        let rest = microseconds % 1_000_000
        return (rest < 0 ? rest + 1_000_000 : rest) * 1000
    }

    @inlinable
    package static func < (lhs: Timestamp, rhs: Timestamp) -> Bool { lhs.microseconds < rhs.microseconds }
}
