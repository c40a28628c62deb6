public import Foundation

/// Selects values that encoders and decoders use unchanged.
public protocol StructureCodingPassthroughTypeResolver {
    /// Whether a value is used unchanged.
    /// - Parameter t: a value when encoding, a type when decoding.
    /// - Returns: true to use the value unchanged, false to encode or decode it.
    static func isPassthroughType<T>(_ t: T) -> Bool
}

/// Encodes an `Encodable` value to the values of databases: strings, numbers, `NSNull`, arrays and dictionaries.
/// `Database.Encoder` is this class, and `Firestore.Encoder` uses its strategies.
public class FirebaseDataEncoder {
    /// How dates are encoded.
    public enum DateEncodingStrategy {
        /// As `Date` encodes itself: seconds since 2001.
        case deferredToDate
        /// As a number of seconds since 1970-01-01T00:00:00Z.
        case secondsSince1970
        /// As a number of milliseconds since 1970-01-01T00:00:00Z.
        case millisecondsSince1970
        /// As a string in ISO 8601, such as `2024-02-29T12:00:00Z`.
        case iso8601
        /// As a string in the form of the formatter.
        case formatted(DateFormatter)
        /// By a closure, which writes to the encoder.
        case custom((Date, any Encoder) throws -> Void)
    }

    /// How `Data` is encoded.
    public enum DataEncodingStrategy {
        /// As `Data` encodes itself: an array of numbers.
        case deferredToData
        /// As a string in Base64.
        case base64
        /// As bytes, for products with such a value. This is the default of `Firestore.Encoder`.
        case blob
        /// By a closure, which writes to the encoder.
        case custom((Data, any Encoder) throws -> Void)
    }

    /// How infinite numbers and NaN are encoded.
    public enum NonConformingFloatEncodingStrategy {
        /// Such numbers are not encoded: `EncodingError.invalidValue` is thrown.
        case `throw`
        /// As the given strings.
        case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How coding keys become names in the data.
    public enum KeyEncodingStrategy {
        /// Keys are used unchanged.
        case useDefaultKeys
        /// From `camelCase` to `camel_case`.
        case convertToSnakeCase
        /// Receives the whole path and returns the new form of the last key.
        case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    /// How dates are encoded; by default as `Date` encodes itself.
    public var dateEncodingStrategy = DateEncodingStrategy.deferredToDate
    /// How `Data` is encoded; by default as Base64.
    public var dataEncodingStrategy = DataEncodingStrategy.base64
    /// How infinite numbers and NaN are encoded; by default this throws.
    public var nonConformingFloatEncodingStrategy = NonConformingFloatEncodingStrategy.throw
    /// How coding keys become names in the data; by default unchanged.
    public var keyEncodingStrategy = KeyEncodingStrategy.useDefaultKeys
    /// Selects values that are used unchanged; nil: every value is encoded.
    public var passthroughTypeResolver: (any StructureCodingPassthroughTypeResolver.Type)?
    /// Values for the `userInfo` of encoders.
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    /// An encoder with the default strategies.
    public init() {}

    /// Encodes a value.
    /// - Parameter value: what to encode.
    /// - Returns: a string, an `NSNumber`, `NSNull`, an array or a dictionary with string keys; values that
    ///   `passthroughTypeResolver` selects are unchanged.
    /// - Throws: `EncodingError` when the value cannot be encoded.
    public func encode<T: Encodable>(_ value: T) throws -> Any {
        let resolver = passthroughTypeResolver
        let options = EncodingOptions(
            date: dateEncodingStrategy, data: dataEncodingStrategy, float: nonConformingFloatEncodingStrategy,
            key: keyEncodingStrategy, userInfo: userInfo,
            isPassedThrough: { resolver?.isPassthroughType($0) ?? false })
        let node = EncodingNode()
        try options.encode(value, into: node, at: [])
        return node.resolved
    }
}
