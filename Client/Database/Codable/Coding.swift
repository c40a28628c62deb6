import Foundation
public import HearthApp

extension Database {
    /// Encodes an `Encodable` to a value that `setValue` takes.
    public typealias Encoder = FirebaseDataEncoder
    /// Decodes a `Decodable` from a snapshot's value.
    public typealias Decoder = FirebaseDataDecoder
}

extension DatabaseReference {
    /// - Parameter completion: runs when the server has answered, on the database's `callbackQueue`.
    /// - Throws: the encoder's error.
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
    /// An absent value decodes as an `Optional`'s nil.
    public func data<T: Decodable>(as type: T.Type, decoder: Database.Decoder = Database.Decoder()) throws -> T {
        try decoder.decode(type, from: value ?? NSNull())
    }
}
