internal import Foundation

extension Firestore {
    /// Makes a document's data of an `Encodable`. `Timestamp`, `GeoPoint`, `VectorValue`, `DocumentReference` and
    /// `FieldValue` go through as they are.
    public class Encoder {
        public var dateEncodingStrategy = FirebaseDataEncoder.DateEncodingStrategy.timestamp
        public var dataEncodingStrategy = FirebaseDataEncoder.DataEncodingStrategy.blob
        public var nonConformingFloatEncodingStrategy = FirebaseDataEncoder.NonConformingFloatEncodingStrategy.throw
        public var keyEncodingStrategy = FirebaseDataEncoder.KeyEncodingStrategy.useDefaultKeys
        public var userInfo: [CodingUserInfoKey: Any] = [:]

        public init() {}

        /// - Throws: `EncodingError.invalidValue` unless the value encodes itself as an object.
        public func encode<T: Encodable>(_ value: T) throws -> [String: Any] {
            let coding = EncodingOptions(
                date: dateEncodingStrategy, data: dataEncodingStrategy, float: nonConformingFloatEncodingStrategy,
                key: keyEncodingStrategy, userInfo: userInfo,
                isPassedThrough: {
                    $0 is Timestamp || $0 is GeoPoint || $0 is VectorValue || $0 is DocumentReference
                        || $0 is FieldValue
                })
            let node = EncodingNode()
            try coding.encode(value, into: node, at: [])
            guard let map = node.resolved as? [String: Any] else {
                throw EncodingError.invalidValue(
                    value,
                    EncodingError.Context(
                        codingPath: [],
                        debugDescription: "Top-level \(T.self) is not allowed: a document's data must be an object."))
            }
            return map
        }
    }
}
