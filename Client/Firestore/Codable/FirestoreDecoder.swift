internal import Foundation

extension Firestore {
    /// Makes a `Decodable` of a document's data.
    public class Decoder {
        public var dateDecodingStrategy = FirebaseDataDecoder.DateDecodingStrategy.timestamp
        public var dataDecodingStrategy = FirebaseDataDecoder.DataDecodingStrategy.blob
        public var nonConformingFloatDecodingStrategy = FirebaseDataDecoder.NonConformingFloatDecodingStrategy.throw
        public var keyDecodingStrategy = FirebaseDataDecoder.KeyDecodingStrategy.useDefaultKeys
        public var userInfo: [CodingUserInfoKey: Any] = [:]

        public init() {}

        /// - Parameter container: as `DocumentSnapshot.data()` gives it, or a value within.
        public func decode<T: Decodable>(_ type: T.Type, from container: Any) throws -> T {
            try decode(type, from: container, in: nil)
        }

        /// - Parameter document: what `@DocumentID` properties take.
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
