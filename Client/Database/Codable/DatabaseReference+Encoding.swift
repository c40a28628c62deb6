public import HearthApp

extension DatabaseReference {
    /// Encodes a value, replaces the data at the location with it, and waits for the server's answer.
    ///
    /// `setValue(from:)` does not wait. This form has another label because Swift selects an `async` overload in every
    /// `async` context, where calls of `setValue(from:)` without `await` would no longer compile.
    /// - Parameters:
    ///   - value: the value; an optional that is nil deletes the data.
    ///   - encoder: encodes `value` to a value that `setValue(_:)` accepts.
    /// - Returns: this reference.
    /// - Throws: `EncodingError` when the value cannot be encoded; an `NSError` of the domain `com.firebase` with the
    ///   server's error; `CancellationError` when the task is cancelled, while the write remains queued.
    @discardableResult
    nonisolated(nonsending) public func setValue<T: Encodable>(
        encoding value: T, encoder: Database.Encoder = Database.Encoder()
    ) async throws -> DatabaseReference {
        try await setValue(encoder.encode(value))
    }
}
