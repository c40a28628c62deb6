public import Foundation

/// Makes a `Decodable` of what databases give. `Database.Decoder` is this class, and `Firestore.Decoder` has its strategies.
public class FirebaseDataDecoder {
    public enum DateDecodingStrategy {
        case deferredToDate
        case secondsSince1970
        case millisecondsSince1970
        case iso8601
        case formatted(DateFormatter)
        case custom((_ decoder: any Decoder) throws -> Date)
    }

    public enum DataDecodingStrategy {
        case deferredToData
        case base64
        case blob
        case custom((_ decoder: any Decoder) throws -> Data)
    }

    public enum NonConformingFloatDecodingStrategy {
        case `throw`
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    public enum KeyDecodingStrategy {
        case useDefaultKeys
        case convertFromSnakeCase
        case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    public var dateDecodingStrategy = DateDecodingStrategy.deferredToDate
    public var dataDecodingStrategy = DataDecodingStrategy.base64
    public var nonConformingFloatDecodingStrategy = NonConformingFloatDecodingStrategy.throw
    public var keyDecodingStrategy = KeyDecodingStrategy.useDefaultKeys
    /// nil: everything is decoded.
    public var passthroughTypeResolver: (any StructureCodingPassthroughTypeResolver.Type)?
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    public init() {}

    /// - Parameter structure: a value as a snapshot gives it, `NSNull` where nothing is.
    public func decode<T: Decodable>(_ type: T.Type, from structure: Any) throws -> T {
        let resolver = passthroughTypeResolver
        let options = DecodingOptions(
            date: dateDecodingStrategy, data: dataDecodingStrategy, float: nonConformingFloatDecodingStrategy,
            key: keyDecodingStrategy, userInfo: userInfo,
            isPassedThrough: { resolver?.isPassthroughType($0) ?? false })
        return try options.decode(type, from: structure, at: [])
    }
}
