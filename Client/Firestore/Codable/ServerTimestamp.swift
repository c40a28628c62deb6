public import Foundation

/// A type that `@ServerTimestamp` supports.
public protocol ServerTimestampWrappable {
    /// Converts a timestamp to the property's value.
    /// - Parameter timestamp: the stored time.
    /// - Returns: the property's value.
    /// - Throws: an error when the value cannot be converted; decoding then fails with it.
    static func wrap(_ timestamp: Timestamp) throws -> Self
    /// Converts the property's value to a timestamp.
    /// - Parameter value: the property's value.
    /// - Returns: the time to store.
    /// - Throws: an error when the value cannot be converted; encoding then fails with it.
    static func unwrap(_ value: Self) throws -> Timestamp
}

extension Date: ServerTimestampWrappable {
    /// Converts a timestamp to the property's value.
    /// - Parameter timestamp: the stored time.
    /// - Returns: the nearest date.
    /// - Throws: nothing.
    public static func wrap(_ timestamp: Timestamp) throws -> Date { timestamp.dateValue() }
    /// Converts the property's value to a timestamp.
    /// - Parameter value: a date in the years 1 to 9999.
    /// - Returns: the time to store, in microseconds.
    /// - Throws: `EncodingError.invalidValue` for a date outside of these years.
    public static func unwrap(_ value: Date) throws -> Timestamp {
        do {
            return Timestamp(try Timestamp.model(of: value))
        } catch {
            throw EncodingError.invalidValue(
                value, EncodingError.Context(codingPath: [], debugDescription: error.message))
        }
    }
}

extension Timestamp: ServerTimestampWrappable {
    /// The timestamp, unchanged.
    /// - Parameter timestamp: the stored time.
    /// - Returns: the timestamp.
    /// - Throws: nothing.
    public static func wrap(_ timestamp: Timestamp) throws -> Self {
        guard let timestamp = timestamp as? Self else { fatalError("Timestamp has no subclasses.") }
        return timestamp
    }

    /// The timestamp, unchanged.
    /// - Parameter value: the property's value.
    /// - Returns: the timestamp.
    /// - Throws: nothing.
    public static func unwrap(_ value: Timestamp) throws -> Timestamp { value }
}

/// A property that the server sets to the time of the write when it is nil.
@propertyWrapper
public struct ServerTimestamp<Value: ServerTimestampWrappable & Codable> {
    /// The time; nil lets the server set it.
    public var wrappedValue: Value?

    /// A property with a time, or without one.
    /// - Parameter value: nil lets the server set the time.
    public init(wrappedValue value: Value?) { wrappedValue = value }
}

extension ServerTimestamp: Codable {
    public init(from decoder: any Swift.Decoder) throws {
        let container = try decoder.singleValueContainer()
        wrappedValue = container.decodeNil() ? nil : try Value.wrap(try container.decode(Timestamp.self))
    }

    public func encode(to encoder: any Swift.Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue {
            try container.encode(try Value.unwrap(wrappedValue))
        } else {
            try container.encode(FieldValue.serverTimestamp())
        }
    }
}

extension ServerTimestamp: Equatable where Value: Equatable {}
extension ServerTimestamp: Hashable where Value: Hashable {}
extension ServerTimestamp: Sendable where Value: Sendable {}
