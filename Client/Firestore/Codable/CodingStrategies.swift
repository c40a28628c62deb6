public import Foundation

/// The choices of `Firestore.Encoder`.
public enum FirebaseDataEncoder {
    public enum DateEncodingStrategy {
        /// As `Date` encodes itself: seconds since 2001.
        case deferredToDate
        case secondsSince1970
        case millisecondsSince1970
        case iso8601
        case formatted(DateFormatter)
        case custom((Date, any Swift.Encoder) throws -> Void)

        /// As a `Timestamp`. The default.
        public static var timestamp: DateEncodingStrategy {
            .custom { date, encoder in
                var container = encoder.singleValueContainer()
                try container.encode(try Date.unwrap(date))
            }
        }
    }

    public enum DataEncodingStrategy {
        /// As `Data` encodes itself: an array of numbers.
        case deferredToData
        case base64
        /// As bytes. The default.
        case blob
        case custom((Data, any Swift.Encoder) throws -> Void)
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
}

/// The choices of `Firestore.Decoder`.
public enum FirebaseDataDecoder {
    public enum DateDecodingStrategy {
        case deferredToDate
        case secondsSince1970
        case millisecondsSince1970
        case iso8601
        case formatted(DateFormatter)
        case custom((_ decoder: any Swift.Decoder) throws -> Date)

        /// From a `Timestamp`. The default.
        public static var timestamp: DateDecodingStrategy {
            .custom { decoder in try decoder.singleValueContainer().decode(Timestamp.self).dateValue() }
        }
    }

    public enum DataDecodingStrategy {
        case deferredToData
        case base64
        case blob
        case custom((_ decoder: any Swift.Decoder) throws -> Data)
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
}

/// A key by its text or position.
struct PlainKey: CodingKey {
    var stringValue: String
    var intValue: Int?

    init(stringValue: String) { self.stringValue = stringValue }

    init(intValue: Int) {
        stringValue = "Index \(intValue)"
        self.intValue = intValue
    }

    static let `super` = PlainKey(stringValue: "super")
}

/// `oneTwoThree` and `one_two_three`.
enum SnakeCase {
    /// An underscore before each word; a run of capitals is one word, but its last letter when a small one follows:
    /// `myURLProperty` has the words my, URL, Property.
    static func from(camel name: String) -> String {
        let letters = Array(name)
        var result = ""
        for (index, letter) in letters.enumerated() {
            if letter.isUppercase, index > 0, letters[index - 1] != "_" {
                let afterCapital = letters[index - 1].isUppercase
                let beforeSmall = index + 1 < letters.count && letters[index + 1].isLowercase
                if !afterCapital || beforeSmall { result += "_" }
            }
            result += letter.lowercased()
        }
        return result
    }

    /// Underscores at the ends stay.
    static func toCamel(_ name: String) -> String {
        let leading = name.prefix { $0 == "_" }
        if leading.count == name.count { return name }
        let trailing = String(name.reversed().prefix { $0 == "_" })
        let words = name.dropFirst(leading.count).dropLast(trailing.count).split(separator: "_")
        guard words.count > 1 else { return name }
        let joined = words[0].lowercased() + words.dropFirst().map(\.capitalized).joined()
        return leading + joined + trailing
    }
}
