internal import Foundation

/// A property whose nil is written as null. Other optional properties omit the field.
@propertyWrapper
public struct ExplicitNull<Value> {
    /// The value; nil is written as null.
    public var wrappedValue: Value?

    /// A property with a value.
    /// - Parameter value: nil is written as null.
    public init(wrappedValue value: Value?) { wrappedValue = value }
}

extension ExplicitNull: Encodable where Value: Encodable {
    public func encode(to encoder: any Swift.Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue {
            try container.encode(wrappedValue)
        } else {
            try container.encodeNil()
        }
    }
}

extension ExplicitNull: Decodable where Value: Decodable {
    public init(from decoder: any Swift.Decoder) throws {
        let container = try decoder.singleValueContainer()
        wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
    }
}

extension ExplicitNull: Equatable where Value: Equatable {}
extension ExplicitNull: Hashable where Value: Hashable {}
extension ExplicitNull: Sendable where Value: Sendable {}
