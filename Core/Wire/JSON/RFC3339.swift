/// The string form of google.protobuf.Timestamp. Source: RFC 3339 and "ProtoJSON Format", Protocol Buffers
/// documentation.
package enum RFC3339 {
    /// Seconds since 1970 and the nanoseconds within that second.
    package struct Instant: Equatable, Sendable {
        package var seconds: Int64
        package var nanoseconds: Int32

        package init(seconds: Int64, nanoseconds: Int32) {
            self.seconds = seconds
            self.nanoseconds = nanoseconds
        }
    }

    // MARK: Parsing

    /// Parses `2024-02-29T12:30:00.123456789+01:00`: nil when the string is malformed, or the instant is outside of the
    /// years 1 to 9999 in UTC. Fractions have up to nine digits; a 60th second is an error, as in Google's parsers.
    package static func parse(_ string: UnsafeRawBufferPointer) -> Instant? {
        var cursor = Cursor(string: string)
        guard let year = cursor.digits(4), cursor.take("-"), let month = cursor.digits(2), cursor.take("-"),
            let day = cursor.digits(2), cursor.take("T") || cursor.take("t"), let hour = cursor.digits(2),
            cursor.take(":"), let minute = cursor.digits(2), cursor.take(":"), let second = cursor.digits(2)
        else { return nil }
        guard year >= 1, (1...12).contains(month), day >= 1, day <= daysInMonth(year, month), hour < 24, minute < 60,
            second < 60
        else { return nil }
        var nanoseconds: Int32 = 0
        if cursor.take(".") {
            guard let fraction = cursor.fraction() else { return nil }
            nanoseconds = fraction
        }
        guard let offset = cursor.offset(), cursor.isAtEnd else { return nil }
        let time = Int64(hour * 3600 + minute * 60 + second)
        let seconds = daysSince1970(year, month, day) * 86_400 + time - offset
        guard seconds >= secondsMin, seconds <= secondsMax else { return nil }
        return Instant(seconds: seconds, nanoseconds: nanoseconds)
    }

    package static func parse(_ string: String) -> Instant? {
        Array(string.utf8).withUnsafeBytes { parse($0) }
    }

    private static let secondsMin: Int64 = -62_135_596_800
    private static let secondsMax: Int64 = 253_402_300_799

    private struct Cursor {
        var string: UnsafeRawBufferPointer
        var position = 0

        init(string: UnsafeRawBufferPointer) {
            self.string = string
        }

        var isAtEnd: Bool { position == string.count }

        @inline(__always)
        mutating func take(_ scalar: Unicode.Scalar) -> Bool {
            guard position < string.count, string[position] == UInt8(truncatingIfNeeded: scalar.value) else {
                return false
            }
            position += 1
            return true
        }

        @inline(__always)
        mutating func digit() -> Int? {
            guard position < string.count else { return nil }
            let digit = string[position] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            position += 1
            return Int(digit)
        }

        @inline(__always)
        mutating func digits(_ count: Int) -> Int? {
            var number = 0
            for _ in 0..<count {
                guard let digit = digit() else { return nil }
                number = number * 10 + digit
            }
            return number
        }

        /// One to nine digits after the point, as nanoseconds.
        mutating func fraction() -> Int32? {
            var number = 0
            var count = 0
            while let digit = digit() {
                count += 1
                if count > 9 { return nil }
                number = number * 10 + digit
            }
            if count == 0 { return nil }
            for _ in count..<9 { number *= 10 }
            return Int32(number)
        }

        /// `Z` or `+hh:mm`, in seconds.
        mutating func offset() -> Int64? {
            if take("Z") || take("z") { return 0 }
            let sign: Int64 = take("+") ? 1 : -1
            if sign < 0, !take("-") { return nil }
            guard let hours = digits(2), take(":"), let minutes = digits(2), hours < 24, minutes < 60 else {
                return nil
            }
            return sign * Int64(hours * 3600 + minutes * 60)
        }
    }

    // MARK: Formatting

    /// Appends the instant in UTC with 0, 3, 6 or 9 fraction digits. RFC 3339 has four digits for a year: an instant
    /// out of range, which a peer may send in the binary form, becomes the nearest valid one.
    package static func append(seconds: Int64, nanoseconds: Int32, to result: inout [UInt8]) {
        let seconds = min(max(seconds, secondsMin), secondsMax)
        var days = seconds / 86_400
        var time = Int(seconds % 86_400)
        if time < 0 {
            days -= 1
            time += 86_400
        }
        let (year, month, day) = civil(days)
        append(year, digits: 4, to: &result)
        result.append(UInt8(ascii: "-"))
        append(month, digits: 2, to: &result)
        result.append(UInt8(ascii: "-"))
        append(day, digits: 2, to: &result)
        result.append(UInt8(ascii: "T"))
        append(time / 3600, digits: 2, to: &result)
        result.append(UInt8(ascii: ":"))
        append(time / 60 % 60, digits: 2, to: &result)
        result.append(UInt8(ascii: ":"))
        append(time % 60, digits: 2, to: &result)
        appendFraction(nanoseconds, to: &result)
        result.append(UInt8(ascii: "Z"))
    }

    package static func format(seconds: Int64, nanoseconds: Int32) -> String {
        var result: [UInt8] = []
        append(seconds: seconds, nanoseconds: nanoseconds, to: &result)
        return String(decoding: result, as: UTF8.self)
    }

    /// Appends a point and 3, 6 or 9 digits, or nothing for zero. Values out of range are clamped.
    static func appendFraction(_ nanoseconds: Int32, to result: inout [UInt8]) {
        let number = min(max(Int(nanoseconds), 0), 999_999_999)
        if number == 0 { return }
        result.append(UInt8(ascii: "."))
        if number % 1_000_000 == 0 {
            append(number / 1_000_000, digits: 3, to: &result)
        } else if number % 1000 == 0 {
            append(number / 1000, digits: 6, to: &result)
        } else {
            append(number, digits: 9, to: &result)
        }
    }

    @inline(__always)
    private static func append(_ number: Int, digits: Int, to result: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<digits { divisor *= 10 }
        while divisor > 0 {
            result.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
            divisor /= 10
        }
    }

    // MARK: Calendar
    // The proleptic Gregorian calendar, counted in eras of 400 years from 1 March, so that the leap day ends a year.

    private static func daysInMonth(_ year: Int, _ month: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days from 1970-01-01 to a date of the years 1 to 9999.
    static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted % 400
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        // 719,468 days lie between 0000-03-01 and 1970-01-01.
        return Int64(era * 146_097 + dayOfEra - 719_468)
    }

    private static func civil(_ days: Int64) -> (year: Int, month: Int, day: Int) {
        let shifted = Int(days) + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}
