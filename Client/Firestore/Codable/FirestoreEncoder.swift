internal import Foundation

extension Firestore {
    /// Encodes an `Encodable` value to a document's data. `Timestamp`, `GeoPoint`, `VectorValue`, `DocumentReference`
    /// and `FieldValue` are used unchanged.
    public class Encoder {
        /// How dates are encoded; by default as a `Timestamp`.
        public var dateEncodingStrategy = FirebaseDataEncoder.DateEncodingStrategy.timestamp
        /// How `Data` is encoded; by default as bytes.
        public var dataEncodingStrategy = FirebaseDataEncoder.DataEncodingStrategy.blob
        /// How infinite numbers and NaN are encoded; by default this throws.
        public var nonConformingFloatEncodingStrategy = FirebaseDataEncoder.NonConformingFloatEncodingStrategy.throw
        /// How coding keys become field names; by default unchanged.
        public var keyEncodingStrategy = FirebaseDataEncoder.KeyEncodingStrategy.useDefaultKeys
        /// Values for the `userInfo` of encoders.
        public var userInfo: [CodingUserInfoKey: Any] = [:]

        /// An encoder with the default strategies.
        public init() {}

        /// Encodes a value.
        /// - Parameter value: what to encode: a value that is encoded as an object.
        /// - Returns: the data, for `setData(_:)`.
        /// - Throws: `EncodingError.invalidValue` unless the value is encoded as an object.
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
