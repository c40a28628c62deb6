import HearthModel

import Glibc

/// Methods of timestamps and durations.
extension MethodCall {
    func timestamp(_ time: RuleTime) -> RuleValue? {
        let days = time.seconds >= 0 ? time.seconds / 86_400 : (time.seconds - 86_399) / 86_400
        let second = time.seconds - days * 86_400
        switch method {
        case .year: return .int(CivilDate(daysSince1970: days).year)
        case .month: return .int(CivilDate(daysSince1970: days).month)
        case .day: return .int(CivilDate(daysSince1970: days).day)
        case .hours: return .int(second / 3600)
        case .minutes: return .int(second / 60 % 60)
        case .seconds: return .int(second % 60)
        case .nanos: return .int(Int64(time.nanoseconds))
        // 1970-01-01 was a Thursday, the fourth day of a week that begins on Monday.
        case .dayOfWeek: return .int(((days + 3) % 7 + 7) % 7 + 1)
        case .dayOfYear:
            let year = CivilDate(daysSince1970: days).year
            return .int(days - CivilDate(year: year, month: 1, day: 1).daysSince1970 + 1)
        case .toMillis: return .int(time.milliseconds)
        case .date: return .timestamp(RuleTime(seconds: days * 86_400, nanoseconds: 0))
        case .time: return .duration(RuleTime(seconds: second, nanoseconds: time.nanoseconds))
        default: return nil
        }
    }

    func duration(_ time: RuleTime) -> RuleValue? {
        switch method {
        case .seconds: .int(time.seconds)
        case .nanos: .int(Int64(time.nanoseconds))
        default: nil
        }
    }
}

/// Distances on Earth.
enum Distance {
    /// The mean radius of the Earth in Google's emulator.
    private static let radiusMeters = 6_371_009.0

    /// By the haversine formula, on a sphere.
    static func meters(_ first: GeoPoint, _ second: GeoPoint) -> Double {
        let radians = Double.pi / 180
        let latitude = sin((second.latitude - first.latitude) * radians / 2)
        let longitude = sin((second.longitude - first.longitude) * radians / 2)
        let chord =
            latitude * latitude
            + cos(first.latitude * radians) * cos(second.latitude * radians) * longitude * longitude
        return 2 * radiusMeters * asin(min(1, chord.squareRoot()))
    }
}
