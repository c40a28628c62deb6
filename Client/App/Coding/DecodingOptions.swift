internal import Foundation

/// The decoder's strategies.
package final class DecodingOptions {
    let date: FirebaseDataDecoder.DateDecodingStrategy
    let data: FirebaseDataDecoder.DataDecodingStrategy
    let nonConformingFloat: FirebaseDataDecoder.NonConformingFloatDecodingStrategy
    let key: FirebaseDataDecoder.KeyDecodingStrategy
    let userInfo: [CodingUserInfoKey: Any]
    /// Types whose values are used unchanged instead of decoded.
    let isPassedThrough: (any Any.Type) -> Bool

    package init(
        date: FirebaseDataDecoder.DateDecodingStrategy, data: FirebaseDataDecoder.DataDecodingStrategy,
        float: FirebaseDataDecoder.NonConformingFloatDecodingStrategy, key: FirebaseDataDecoder.KeyDecodingStrategy,
        userInfo: [CodingUserInfoKey: Any], isPassedThrough: @escaping (any Any.Type) -> Bool
    ) {
        self.date = date
        self.data = data
        nonConformingFloat = float
        self.key = key
        self.userInfo = userInfo
        self.isPassedThrough = isPassedThrough
    }

    package func decode<T: Decodable>(_ type: T.Type, from value: Any, at path: [any CodingKey]) throws -> T {
        switch type {
        case _ where isPassedThrough(type):
            guard let value = value as? T else { throw mismatch(type, value, path) }
            return value
        case is Date.Type: return try date(value, path) as! T
        case is Data.Type: return try data(value, path) as! T
        case is URL.Type:
            guard let url = URL(string: try string(value, path)) else {
                throw DecodingError.dataCorrupted(
                    DecodingError.Context(codingPath: path, debugDescription: "The string is not a URL."))
            }
            return url as! T
        case is Decimal.Type:
            guard let number = value as? NSNumber, !number.holdsBoolean else { throw mismatch(type, value, path) }
            return number.decimalValue as! T
        case let type as any StringKeyedDecodable.Type:
            guard let map = value as? [String: Any] else { throw mismatch([String: Any].self, value, path) }
            return try type.decode(map, self, path) as! T
        default: return try T(from: ValueDecoder(value: value, options: self, codingPath: path))
        }
    }

    /// A map's members under the names of the coding keys.
    func named(_ map: [String: Any], at path: [any CodingKey]) -> [String: Any] {
        switch key {
        case .useDefaultKeys: return map
        case .convertFromSnakeCase:
            return Dictionary(map.map { (SnakeCase.toCamel($0.key), $0.value) }) { first, _ in first }
        case .custom(let convert):
            return Dictionary(
                map.map { (convert(path + [PlainKey(stringValue: $0.key)]).stringValue, $0.value) }
            ) { first, _ in first }
        }
    }

    // MARK: Scalars

    func isNull(_ value: Any) -> Bool {
        if let optional = value as? any OptionalValue { return optional.wrappedValue.map { isNull($0) } ?? true }
        return value is NSNull
    }

    func boolean(_ value: Any, _ path: [any CodingKey]) throws -> Bool {
        guard let number = value as? NSNumber, number.holdsBoolean else { throw mismatch(Bool.self, value, path) }
        return number.boolValue
    }

    func string(_ value: Any, _ path: [any CodingKey]) throws -> String {
        guard let string = value as? String else { throw mismatch(String.self, value, path) }
        return string
    }

    func integer<Integer: FixedWidthInteger>(_ value: Any, _ path: [any CodingKey]) throws -> Integer {
        guard let number = value as? NSNumber, !number.holdsBoolean else { throw mismatch(Integer.self, value, path) }
        let exact: Integer? =
            if number.holdsFloatingPoint {
                Integer(exactly: number.doubleValue)
            } else if number.holdsUnsigned64 {
                Integer(exactly: number.uint64Value)
            } else {
                Integer(exactly: number.int64Value)
            }
        guard let exact else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: path, debugDescription: "\(number) does not fit in \(Integer.self)."))
        }
        return exact
    }

    func double(_ value: Any, _ path: [any CodingKey]) throws -> Double {
        if let number = value as? NSNumber, !number.holdsBoolean { return number.doubleValue }
        if let string = value as? String,
            case .convertFromString(let positiveInfinity, let negativeInfinity, let nan) = nonConformingFloat
        {
            if string == positiveInfinity { return .infinity }
            if string == negativeInfinity { return -.infinity }
            if string == nan { return .nan }
        }
        throw mismatch(Double.self, value, path)
    }

    func float(_ value: Any, _ path: [any CodingKey]) throws -> Float {
        let wide = try double(value, path)
        let float = Float(wide)
        if wide.isFinite, !float.isFinite {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: path, debugDescription: "\(wide) does not fit in Float."))
        }
        return float
    }

    // MARK: Dates and data

    private func date(_ value: Any, _ path: [any CodingKey]) throws -> Date {
        let decoder = ValueDecoder(value: value, options: self, codingPath: path)
        switch date {
        case .deferredToDate: return try Date(from: decoder)
        case .secondsSince1970: return Date(timeIntervalSince1970: try double(value, path))
        case .millisecondsSince1970: return Date(timeIntervalSince1970: try double(value, path) / 1000)
        case .iso8601: return try date(try string(value, path), path) { ISO8601DateFormatter().date(from: $0) }
        case .formatted(let formatter): return try date(try string(value, path), path) { formatter.date(from: $0) }
        case .custom(let decode): return try decode(decoder)
        }
    }

    private func date(_ string: String, _ path: [any CodingKey], _ parse: (String) -> Date?) throws -> Date {
        guard let date = parse(string) else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: path, debugDescription: "The string is not a date of the expected format.")
            )
        }
        return date
    }

    private func data(_ value: Any, _ path: [any CodingKey]) throws -> Data {
        let decoder = ValueDecoder(value: value, options: self, codingPath: path)
        switch data {
        case .deferredToData: return try Data(from: decoder)
        case .base64:
            guard let data = Data(base64Encoded: try string(value, path)) else {
                throw DecodingError.dataCorrupted(
                    DecodingError.Context(codingPath: path, debugDescription: "The string is not Base64."))
            }
            return data
        case .blob:
            guard let data = value as? Data else { throw mismatch(Data.self, value, path) }
            return data
        case .custom(let decode): return try decode(decoder)
        }
    }

    // MARK: Errors

    func mismatch<T>(_ type: T.Type, _ value: Any, _ path: [any CodingKey]) -> DecodingError {
        if isNull(value) {
            return .valueNotFound(
                type, DecodingError.Context(codingPath: path, debugDescription: "Expected \(type), but found null."))
        }
        return .typeMismatch(
            type,
            DecodingError.Context(
                codingPath: path, debugDescription: "Expected \(type), but found \(Swift.type(of: value))."))
    }
}

/// A dictionary with string keys.
protocol StringKeyedDecodable {
    static func decode(_ map: [String: Any], _ options: DecodingOptions, _ path: [any CodingKey]) throws -> Any
}

extension Dictionary: StringKeyedDecodable where Key == String, Value: Decodable {
    static func decode(_ map: [String: Any], _ options: DecodingOptions, _ path: [any CodingKey]) throws -> Any {
        var result: [String: Value] = [:]
        for (name, member) in map {
            result[name] = try options.decode(Value.self, from: member, at: path + [PlainKey(stringValue: name)])
        }
        return result
    }
}
