public import Foundation

/// Decodes the values of databases to `Decodable` types. `Database.Decoder` is this class, and `Firestore.Decoder` uses
/// its strategies.
public class FirebaseDataDecoder {
    /// How dates are decoded.
    public enum DateDecodingStrategy {
        case deferredToDate
        case secondsSince1970
        case millisecondsSince1970
        case iso8601
        case formatted(DateFormatter)
        case custom((_ decoder: any Decoder) throws -> Date)
    }

    /// How `Data` is decoded.
    public enum DataDecodingStrategy {
        case deferredToData
        case base64
        case blob
        case custom((_ decoder: any Decoder) throws -> Data)
    }

    /// How strings are decoded to infinite numbers and NaN.
    public enum NonConformingFloatDecodingStrategy {
        case `throw`
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How names in the data become coding keys.
    public enum KeyDecodingStrategy {
        case useDefaultKeys
        case convertFromSnakeCase
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
    /// - Parameter structure: a value in the form of a snapshot's value; `NSNull` when there is none.
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
