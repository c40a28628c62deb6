public import Foundation

/// Decodes the values of databases to `Decodable` types. `Database.Decoder` is this class, and `Firestore.Decoder` uses
/// its strategies.
public class FirebaseDataDecoder {
    /// How dates are decoded.
    public enum DateDecodingStrategy {
        /// As `Date` decodes itself: from seconds since 2001.
        case deferredToDate
        /// From a number of seconds since 1970-01-01T00:00:00Z.
        case secondsSince1970
        /// From a number of milliseconds since 1970-01-01T00:00:00Z.
        case millisecondsSince1970
        /// From a string in ISO 8601, such as `2024-02-29T12:00:00Z`.
        case iso8601
        /// From a string in the form of the formatter.
        case formatted(DateFormatter)
        /// By a closure, which reads from the decoder and returns the date.
        case custom((_ decoder: any Decoder) throws -> Date)
    }

    /// How `Data` is decoded.
    public enum DataDecodingStrategy {
        /// As `Data` decodes itself: from an array of numbers.
        case deferredToData
        /// From a string in Base64.
        case base64
        /// From bytes, for products with such a value. This is the default of `Firestore.Decoder`.
        case blob
        /// By a closure, which reads from the decoder and returns the data.
        case custom((_ decoder: any Decoder) throws -> Data)
    }

    /// How strings are decoded to infinite numbers and NaN.
    public enum NonConformingFloatDecodingStrategy {
        /// Strings are not converted: `DecodingError` is thrown.
        case `throw`
        /// From the given strings.
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How names in the data become coding keys.
    public enum KeyDecodingStrategy {
        /// Names are used unchanged.
        case useDefaultKeys
        /// From `snake_case` to `snakeCase`.
        case convertFromSnakeCase
        /// By a closure, which receives the whole path and returns the new form of the last key.
        case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    /// How dates are decoded; by default as `Date` decodes itself.
    public var dateDecodingStrategy = DateDecodingStrategy.deferredToDate
    /// How `Data` is decoded; by default from Base64.
    public var dataDecodingStrategy = DataDecodingStrategy.base64
    /// How strings are decoded to infinite numbers and NaN; by default this throws.
    public var nonConformingFloatDecodingStrategy = NonConformingFloatDecodingStrategy.throw
    /// How names in the data become coding keys; by default unchanged.
    public var keyDecodingStrategy = KeyDecodingStrategy.useDefaultKeys
    /// Selects types that are used unchanged; nil: every type is decoded.
    public var passthroughTypeResolver: (any StructureCodingPassthroughTypeResolver.Type)?
    /// Values for the `userInfo` of decoders.
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    /// A decoder with the default strategies.
    public init() {}

    /// Decodes a value.
    /// - Parameters:
    ///   - type: the type of the result.
    ///   - structure: a value in the form of a snapshot's value; `NSNull` when there is none.
    /// - Returns: the decoded value.
    /// - Throws: `DecodingError` when the value does not match the type.
    public func decode<T: Decodable>(_ type: T.Type, from structure: Any) throws -> T {
        let resolver = passthroughTypeResolver
        let options = DecodingOptions(
            date: dateDecodingStrategy, data: dataDecodingStrategy, float: nonConformingFloatDecodingStrategy,
            key: keyDecodingStrategy, userInfo: userInfo,
            isPassedThrough: { resolver?.isPassthroughType($0) ?? false })
        return try options.decode(type, from: structure, at: [])
    }
}
