internal import Foundation

extension Firestore {
    /// Decodes a document's data to a `Decodable` type.
    public class Decoder {
        /// How dates are decoded; by default from a `Timestamp`.
        public var dateDecodingStrategy = FirebaseDataDecoder.DateDecodingStrategy.timestamp
        /// How `Data` is decoded; by default from bytes.
        public var dataDecodingStrategy = FirebaseDataDecoder.DataDecodingStrategy.blob
        /// How strings are decoded to infinite numbers and NaN; by default this throws.
        public var nonConformingFloatDecodingStrategy = FirebaseDataDecoder.NonConformingFloatDecodingStrategy.throw
        /// How field names become coding keys; by default unchanged.
        public var keyDecodingStrategy = FirebaseDataDecoder.KeyDecodingStrategy.useDefaultKeys
        /// Values for the `userInfo` of decoders.
        public var userInfo: [CodingUserInfoKey: Any] = [:]

        /// A decoder with the default strategies.
        public init() {}

        /// Decodes a value.
        /// - Parameters:
        ///   - type: the type of the result.
        ///   - container: a value in the form of `DocumentSnapshot.data()`, or a value inside it.
        /// - Returns: the decoded value.
        /// - Throws: `DecodingError` when the value does not match the type.
        public func decode<T: Decodable>(_ type: T.Type, from container: Any) throws -> T {
            try decode(type, from: container, in: nil)
        }

        /// Decodes a document.
        /// - Parameters:
        ///   - type: the type of the result.
        ///   - container: a value in the form of `DocumentSnapshot.data()`, or `NSNull` for a document that does not
        ///     exist.
        ///   - document: the value of `@DocumentID` properties; nil when there are none.
        /// - Returns: the decoded value.
        /// - Throws: `DecodingError` when the value does not match the type.
        public func decode<T: Decodable>(
            _ type: T.Type, from container: Any, in document: DocumentReference?
        ) throws -> T {
            var userInfo = userInfo
            userInfo[.documentReference] = document
            let options = DecodingOptions(
                date: dateDecodingStrategy, data: dataDecodingStrategy, float: nonConformingFloatDecodingStrategy,
                key: keyDecodingStrategy, userInfo: userInfo,
                isPassedThrough: {
                    $0 is Timestamp.Type || $0 is GeoPoint.Type || $0 is VectorValue.Type
                        || $0 is DocumentReference.Type
                })
            return try options.decode(type, from: container, at: [])
        }
    }
}

extension CodingUserInfoKey {
    static let documentReference = CodingUserInfoKey(rawValue: "FirestoreDocumentReference")!
}
