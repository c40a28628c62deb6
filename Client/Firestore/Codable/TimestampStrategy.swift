internal import Foundation

extension FirebaseDataEncoder.DateEncodingStrategy {
    /// As a `Timestamp`. The default.
    public static var timestamp: FirebaseDataEncoder.DateEncodingStrategy {
        .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(try Date.unwrap(date))
        }
    }
}

extension FirebaseDataDecoder.DateDecodingStrategy {
    /// From a `Timestamp`. The default.
    public static var timestamp: FirebaseDataDecoder.DateDecodingStrategy {
        .custom { decoder in try decoder.singleValueContainer().decode(Timestamp.self).dateValue() }
    }
}
