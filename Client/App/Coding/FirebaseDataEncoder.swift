public import Foundation

/// Says which values coders don't look into, but take as they are.
public protocol StructureCodingPassthroughTypeResolver {
    /// - Parameter t: a value when encoding, a type when decoding.
    static func isPassthroughType<T>(_ t: T) -> Bool
}

/// Makes of an `Encodable` what databases take: texts, numbers, `NSNull`, arrays and dictionaries. `Database.Encoder` is this
/// class, and `Firestore.Encoder` has its strategies.
public class FirebaseDataEncoder {
    public enum DateEncodingStrategy {
        /// As `Date` encodes itself: seconds since 2001.
        case deferredToDate
        case secondsSince1970
        case millisecondsSince1970
        case iso8601
        case formatted(DateFormatter)
        case custom((Date, any Encoder) throws -> Void)
    }

    public enum DataEncodingStrategy {
        /// As `Data` encodes itself: an array of numbers.
        case deferredToData
        case base64
        /// As bytes, where the product has such a value; `Firestore.Encoder`'s default.
        case blob
        case custom((Data, any Encoder) throws -> Void)
    }

    public enum NonConformingFloatEncodingStrategy {
        case `throw`
        case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    public enum KeyEncodingStrategy {
        case useDefaultKeys
        case convertToSnakeCase
        /// Gets the whole path, and gives the last key's new form.
        case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    public var dateEncodingStrategy = DateEncodingStrategy.deferredToDate
    public var dataEncodingStrategy = DataEncodingStrategy.base64
    public var nonConformingFloatEncodingStrategy = NonConformingFloatEncodingStrategy.throw
    public var keyEncodingStrategy = KeyEncodingStrategy.useDefaultKeys
    /// nil: everything is encoded.
    public var passthroughTypeResolver: (any StructureCodingPassthroughTypeResolver.Type)?
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    public init() {}

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
