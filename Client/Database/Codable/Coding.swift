import Foundation
public import HearthApp

extension Database {
    /// Encodes an `Encodable` to a value that `setValue` takes.
    public typealias Encoder = FirebaseDataEncoder
    /// Decodes a `Decodable` from a snapshot's value.
    public typealias Decoder = FirebaseDataDecoder
}

extension DatabaseReference {
    /// Encodes a value and replaces the data at the location with it, as `setValue(_:)`: observers receive it at once,
    /// and offline it waits.
    /// - Parameters:
    ///   - value: a value that encodes to what `setValue(_:)` takes; invalid keys end the program.
    ///   - encoder: the encoder with its strategies.
    ///   - completion: runs once, on the database's `callbackQueue`, when the server has answered, offline only after
    ///     the client is online again. It receives nil, or the error as `Completion` does. nil ignores the answer.
    /// - Throws: `EncodingError` when the value cannot be encoded, such as one with an infinite number; nothing is
    ///   written then.
    public func setValue<T: Encodable>(
        from value: T, encoder: Database.Encoder = Database.Encoder(),
        completion: (@Sendable ((any Error)?) -> Void)? = nil
    ) throws {
        let encoded = try encoder.encode(value)
        guard let completion else { return setValue(encoded) }
        setValue(encoded) { error, _ in completion(error) }
    }
}

extension DataSnapshot {
    /// Decodes the data.
    /// - Parameters:
    ///   - type: the type of the result; for absent data an `Optional`, which is nil then.
    ///   - decoder: the decoder with its strategies.
    /// - Returns: the decoded value.
    /// - Throws: `DecodingError` when the data does not fit the type.
    public func data<T: Decodable>(as type: T.Type, decoder: Database.Decoder = Database.Decoder()) throws -> T {
        try decoder.decode(type, from: value ?? NSNull())
    }
}
