import HearthModel

import Glibc

/// The functions that every ruleset has, those of namespaces with their full names.
enum BuiltinFunction: String, Sendable, CaseIterable {
    case get, exists, getAfter, existsAfter, debug, int, float, string, path
    case abs = "math.abs"
    case ceil = "math.ceil"
    case floor = "math.floor"
    case round = "math.round"
    case sqrt = "math.sqrt"
    case pow = "math.pow"
    case isNaN = "math.isNaN"
    case timestampDate = "timestamp.date"
    case timestampValue = "timestamp.value"
    case durationValue = "duration.value"
    case durationTime = "duration.time"
    case durationAbs = "duration.abs"
    case latlngValue = "latlng.value"
    case md5 = "hashing.md5"
    case sha256 = "hashing.sha256"
    case crc32 = "hashing.crc32"
    case crc32c = "hashing.crc32c"

    /// The names that may precede a function's name, and are invalid elsewhere.
    static let namespaces: Set<String> = ["math", "timestamp", "duration", "latlng", "hashing"]

    var parameterCount: Int {
        switch self {
        case .pow, .durationValue, .latlngValue: 2
        case .timestampDate: 3
        case .durationTime: 4
        default: 1
        }
    }
}

/// A call of a built-in function with values that are not errors.
struct BuiltinCall {
    let function: BuiltinFunction
    let node: Int
    let evaluation: Evaluation

    // MARK: Functions of one argument

    func result(_ value: RuleValue) -> RuleValue {
        switch function {
        case .get: return document(value, isAfter: false, asks: false)
        case .exists: return document(value, isAfter: false, asks: true)
        case .getAfter: return document(value, isAfter: true, asks: false)
        case .existsAfter: return document(value, isAfter: true, asks: true)
        case .debug:
            debug(value)
            return value
        case .int: return Conversion.integer(value)
        case .float: return Conversion.float(value)
        case .string:
            return Conversion.string(of: value).map { evaluation.string($0) } ?? unsupported([value])
        case .path:
            guard case .string(let string) = value else { return unsupported([value]) }
            return Conversion.path(string)
        case .abs, .ceil, .floor, .round, .sqrt, .isNaN: return number(value)
        case .timestampValue:
            switch value {
            case .int(let milliseconds):
                return RuleTime.timestamp(
                    seconds: milliseconds / 1000, nanoseconds: milliseconds % 1000 * 1_000_000
                ).map { .timestamp($0) } ?? Conversion.invalidTimestamp
            case .string(let string):
                return RuleTime(parsing: string).map { .timestamp($0) } ?? Conversion.invalidTimestamp
            default: return unsupported([value])
            }
        case .durationAbs:
            guard case .duration(let time) = value else { return unsupported([value]) }
            return .duration(
                RuleTime(seconds: Swift.abs(time.seconds), nanoseconds: Swift.abs(time.nanoseconds)))
        case .md5, .sha256, .crc32, .crc32c: return digest(value)
        case .pow, .timestampDate, .durationValue, .durationTime, .latlngValue: return result([value])
        }
    }

    private func unsupported(_ values: [RuleValue]) -> RuleValue {
        Signatures.unsupported(function.rawValue, values)
    }

    private func number(_ value: RuleValue) -> RuleValue {
        if function == .abs, case .int(let number) = value {
            // The least integer has no positive counterpart and does not change.
            return .int(number == .min ? number : Swift.abs(number))
        }
        guard let number = Self.double(value) else { return unsupported([value]) }
        switch function {
        case .abs: return .float(Swift.abs(number))
        case .ceil: return .float(number.rounded(.up))
        case .floor: return .float(number.rounded(.down))
        // Half rounds up. Adding 0.5 would also round up the largest number below one half.
        case .round:
            let down = number.rounded(.down)
            return .int(Conversion.saturated(number - down >= 0.5 ? down + 1 : down))
        case .sqrt: return .float(number.squareRoot())
        default: return .bool(number.isNaN)
        }
    }

    private static func double(_ value: RuleValue) -> Double? {
        switch value {
        case .int(let number): Double(number)
        case .float(let number): number
        default: nil
        }
    }

    private func digest(_ value: RuleValue) -> RuleValue {
        let bytes: [UInt8]
        switch value {
        case .string(let string): bytes = Array(string.utf8)
        case .bytes(let value): bytes = value
        default: return unsupported([value])
        }
        guard evaluation.work(bytes.count) else { return evaluation.abort() }
        switch function {
        case .md5: return Hashes.md5(bytes).map { .bytes($0) } ?? unsupported([value])
        case .sha256: return Hashes.sha256(bytes).map { .bytes($0) } ?? unsupported([value])
        case .crc32: return .bytes(Hashes.crc32(bytes))
        default: return .bytes(Hashes.crc32c(bytes))
        }
    }

    private func debug(_ value: RuleValue) {
        guard let observer = evaluation.observer else { return }
        observer.didDebug(
            "\(value.typeName)_value: \(evaluation.description(of: value))",
            at: evaluation.ruleset.expressions[node].line)
    }

    // MARK: Documents

    private func document(_ value: RuleValue, isAfter: Bool, asks: Bool) -> RuleValue {
        guard case .path(let path) = value else { return unsupported([value]) }
        if let name = path.openName { return Conversion.unbound(name) }
        func refused() -> RuleValue {
            .failure(.serviceCall(function: function.rawValue, argument: Conversion.argument(path)))
        }
        guard let segments = path.documentSegments, !segments.isEmpty, segments.count.isMultiple(of: 2),
            case .string(let database) = path.segments[1], UTF8Order.equal(database, evaluation.request.database),
            // A segment that contains a slash or is empty names nothing.
            segments.allSatisfy({ !$0.isEmpty && !$0.utf8.contains(UInt8(ascii: "/")) })
        else { return refused() }
        let document = ResourcePath(segments)
        guard evaluation.reader.answers(function.rawValue, document) else {
            return .failure(.functionNotFound(function.rawValue))
        }
        do throws(Status) {
            let outcome = try evaluation.access.document(document, isAfter: isAfter, evaluation.reader)
            switch outcome {
            case .isOverLimit: return refused()
            case .document(let document):
                if asks { return .bool(document != nil) }
                // The documented result, and the service's; Google's emulator makes it an error (docs/reference/rules.md).
                return document.map { .map(.document($0)) } ?? .null
            }
        } catch {
            return evaluation.fail(error)
        }
    }

    // MARK: Functions of several arguments

    func result(_ values: [RuleValue]) -> RuleValue {
        switch function {
        case .pow:
            guard let base = Self.double(values[0]), let exponent = Self.double(values[1]) else {
                return unsupported(values)
            }
            return .float(raised(base, exponent))
        case .latlngValue:
            guard let latitude = Self.double(values[0]), let longitude = Self.double(values[1]) else {
                return unsupported(values)
            }
            return point(latitude, longitude)
        case .durationValue:
            guard case .int(let count) = values[0], case .string(let unit) = values[1] else {
                return unsupported(values)
            }
            return duration(count, unit)
        case .timestampDate, .durationTime:
            var numbers: [Int64] = []
            for value in values {
                guard case .int(let number) = value else { return unsupported(values) }
                numbers.append(number)
            }
            return function == .timestampDate ? date(numbers) : duration(numbers)
        default: return values.count == 1 ? result(values[0]) : Signatures.wrongCount(of: function, values.count)
        }
    }

    private func raised(_ base: Double, _ exponent: Double) -> Double {
        // Java's `pow`; C's returns 1 for 1 to any power.
        if exponent.isNaN || abs(base) == 1 && exponent.isInfinite { return .nan }
        return Glibc.pow(base, exponent)
    }

    private func point(_ latitude: Double, _ longitude: Double) -> RuleValue {
        guard (-90...90).contains(latitude), (-180...180).contains(longitude) else {
            return .failure(
                .other(
                    "Latitude should be in [-90,90] range and longitude should be in [-180,180] range. latitude: "
                        + "\(Decimal.java(latitude)), longitude: \(Decimal.java(longitude))."))
        }
        return .latlng(RuleGeoPoint(GeoPoint(latitude: latitude, longitude: longitude)))
    }

    private func date(_ numbers: [Int64]) -> RuleValue {
        let (year, month, day) = (numbers[0], numbers[1], numbers[2])
        guard (1...9999).contains(year) else {
            return .failure(
                .other(
                    "Timestamp should be between 0001-01-01T00.00.00Z and 9999-12-31T23.59.59Z. year: \(year)."))
        }
        let date = CivilDate(year: year, month: month, day: day)
        guard date.isValid else {
            return .failure(.other("Date is not valid. year: \(year), month: \(month) day: \(day)."))
        }
        return .timestamp(RuleTime(seconds: date.daysSince1970 * 86_400, nanoseconds: 0))
    }

    private func duration(_ count: Int64, _ unit: String) -> RuleValue {
        let seconds: [String: Int64] = ["w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1]
        let parts: [String: Int64] = ["ms": 1000, "ns": 1_000_000_000]
        if let factor = seconds[unit] {
            let (product, overflow) = count.multipliedReportingOverflow(by: factor)
            guard !overflow else { return Conversion.invalidDuration }
            return RuleTime.duration(seconds: product, nanoseconds: 0).map { .duration($0) }
                ?? Conversion.invalidDuration
        }
        guard let divisor = parts[unit] else { return .failure(.invalidPattern(unit)) }
        return RuleTime.duration(
            seconds: count / divisor, nanoseconds: count % divisor * (1_000_000_000 / divisor)
        ).map { .duration($0) } ?? Conversion.invalidDuration
    }

    /// Hours, minutes, seconds and nanoseconds.
    private func duration(_ numbers: [Int64]) -> RuleValue {
        var seconds: Int64 = 0
        for (number, factor) in zip(numbers, [3600, 60, 1] as [Int64]) {
            let (product, overflow) = number.multipliedReportingOverflow(by: factor)
            let (sum, carried) = seconds.addingReportingOverflow(product)
            if overflow || carried { return Conversion.invalidDuration }
            seconds = sum
        }
        return RuleTime.duration(seconds: seconds, nanoseconds: numbers[3]).map { .duration($0) }
            ?? Conversion.invalidDuration
    }
}
