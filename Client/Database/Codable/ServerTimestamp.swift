public import Foundation

/// A property that the server sets to the time of the write if it is nil; otherwise a date in whole milliseconds.
@propertyWrapper
public struct ServerTimestamp: Codable, Equatable, Hashable, Sendable {
    /// The date, decoded from milliseconds since 1970; nil to be set by the server. Fractions of a millisecond are cut
    /// off when it is encoded.
    public var wrappedValue: Date?

    /// Creates the property.
    /// - Parameter value: the date; nil for the time of the write.
    public init(wrappedValue value: Date?) { wrappedValue = value }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        wrappedValue =
            container.decodeNil() ? nil : Date(timeIntervalSince1970: try container.decode(Double.self) / 1000)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        guard let wrappedValue else { return try container.encode([".sv": "timestamp"]) }
        let milliseconds = (wrappedValue.timeIntervalSince1970 * 1000).rounded(.down)
        guard let whole = Int64(exactly: milliseconds) else {
            throw EncodingError.invalidValue(
                wrappedValue,
                EncodingError.Context(
                    codingPath: encoder.codingPath, debugDescription: "The date is no number of milliseconds."))
        }
        try container.encode(whole)
    }
}
