import HearthModel

/// An instant since 1970 or a duration, in nanoseconds: stored times have microseconds, but rules may add smaller
/// amounts.
///
/// The nanoseconds of an instant count forward from the second (0..<1,000,000,000); those of a duration have the sign
/// of the seconds. In both cases the seconds are compared first.
struct RuleTime: Equatable, Comparable, Sendable {
    var seconds: Int64
    var nanoseconds: Int32

    init(seconds: Int64, nanoseconds: Int32) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    init(_ timestamp: Timestamp) {
        seconds = timestamp.seconds
        nanoseconds = Int32(truncatingIfNeeded: timestamp.nanoseconds)
    }

    static func < (lhs: RuleTime, rhs: RuleTime) -> Bool {
        lhs.seconds != rhs.seconds ? lhs.seconds < rhs.seconds : lhs.nanoseconds < rhs.nanoseconds
    }

    /// The largest duration. Source: google.protobuf.Duration.
    static let durationSecondsMax: Int64 = 315_576_000_000

    /// An instant from any count of nanoseconds; nil outside of years 1 to 9999.
    static func timestamp(seconds: Int64, nanoseconds: Int64) -> RuleTime? {
        var carry = nanoseconds / 1_000_000_000
        var rest = nanoseconds % 1_000_000_000
        if rest < 0 {
            rest += 1_000_000_000
            carry -= 1
        }
        let (sum, overflow) = seconds.addingReportingOverflow(carry)
        guard !overflow, (Timestamp.secondsMin...Timestamp.secondsMax).contains(sum) else { return nil }
        return RuleTime(seconds: sum, nanoseconds: Int32(truncatingIfNeeded: rest))
    }

    /// A duration from any count of nanoseconds; nil when it is too long.
    static func duration(seconds: Int64, nanoseconds: Int64) -> RuleTime? {
        let (sum, overflow) = seconds.addingReportingOverflow(nanoseconds / 1_000_000_000)
        guard !overflow, sum >= -durationSecondsMax - 1, sum <= durationSecondsMax + 1 else { return nil }
        var total = sum
        var rest = nanoseconds % 1_000_000_000
        if total > 0, rest < 0 {
            total -= 1
            rest += 1_000_000_000
        } else if total < 0, rest > 0 {
            total += 1
            rest -= 1_000_000_000
        }
        guard total >= -durationSecondsMax, total <= durationSecondsMax else { return nil }
        return RuleTime(seconds: total, nanoseconds: Int32(truncatingIfNeeded: rest))
    }

    /// The whole milliseconds, rounded towards the past for instants.
    var milliseconds: Int64 { seconds * 1000 + Int64(nanoseconds) / 1_000_000 }
}

extension RuleTime {
    /// The instant of `2020-02-29T12:30:00.5+01:00`, by RFC 3339; nil when the string is malformed.
    init?(parsing string: String) {
        var rest = Array(string.utf8)[...]
        func digits(_ count: Int) -> Int64? {
            var number: Int64 = 0
            for _ in 0..<count {
                guard let byte = rest.popFirst(), Lexer.isDigit(byte) else { return nil }
                number = number * 10 + Int64(byte - UInt8(ascii: "0"))
            }
            return number
        }
        func take(_ characters: String) -> UInt8? {
            guard let byte = rest.first, characters.utf8.contains(byte) else { return nil }
            return rest.popFirst()
        }
        guard let year = digits(4), take("-") != nil, let month = digits(2), take("-") != nil, let day = digits(2),
            CivilDate(year: year, month: month, day: day).isValid, take("Tt") != nil, let hour = digits(2), hour < 24,
            take(":") != nil, let minute = digits(2), minute < 60, take(":") != nil, let second = digits(2), second < 60
        else { return nil }
        var fraction: Int64 = 0
        if take(".") != nil {
            var unit: Int64 = 100_000_000
            while let byte = rest.first, Lexer.isDigit(byte) {
                fraction += Int64(byte - UInt8(ascii: "0")) * unit
                unit /= 10
                rest.removeFirst()
            }
        }
        var offset: Int64 = 0
        if let sign = take("+-") {
            guard let hours = digits(2), take(":") != nil, let minutes = digits(2), hours < 24, minutes < 60 else {
                return nil
            }
            offset = (hours * 3600 + minutes * 60) * (sign == UInt8(ascii: "-") ? -1 : 1)
        } else if take("Zz") == nil {
            return nil
        }
        let days = CivilDate(year: year, month: month, day: day).daysSince1970
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset
        guard rest.isEmpty, let time = Self.timestamp(seconds: seconds, nanoseconds: fraction) else { return nil }
        self = time
    }
}

/// The calendar of UTC. Source: the proleptic Gregorian calendar, by Howard Hinnant's "chrono-compatible low-level date
/// algorithms".
struct CivilDate {
    var year: Int64
    var month: Int64
    var day: Int64

    init(year: Int64, month: Int64, day: Int64) {
        self.year = year
        self.month = month
        self.day = day
    }

    init(daysSince1970 days: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// - Precondition: the year is at most a few thousand.
    var daysSince1970: Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    var isValid: Bool {
        guard (1...12).contains(month), day >= 1 else { return false }
        let isLeap = year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
        let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return day <= lengths[Int(month) - 1]
    }
}
