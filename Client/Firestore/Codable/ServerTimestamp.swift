public import Foundation

/// A type that `@ServerTimestamp` supports.
public protocol ServerTimestampWrappable {
    static func wrap(_ timestamp: Timestamp) throws -> Self
    static func unwrap(_ value: Self) throws -> Timestamp
}

extension Date: ServerTimestampWrappable {
    /// Converts a timestamp to the property's value.
    public static func wrap(_ timestamp: Timestamp) throws -> Date { timestamp.dateValue() }
    /// Converts the property's value to a timestamp.
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
    /// Converts a timestamp to the property's value.
    public static func wrap(_ timestamp: Timestamp) throws -> Self {
        guard let timestamp = timestamp as? Self else { fatalError("Timestamp has no subclasses.") }
        return timestamp
    }

    /// Converts the property's value to a timestamp.
    public static func unwrap(_ value: Timestamp) throws -> Timestamp { value }
}

/// A property that the server sets to the time of the write when it is nil.
@propertyWrapper
public struct ServerTimestamp<Value: ServerTimestampWrappable & Codable> {
    /// The time; nil lets the server set it.
    public var wrappedValue: Value?

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
