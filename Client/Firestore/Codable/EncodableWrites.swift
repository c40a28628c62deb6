/// Writes of encodable values that wait for the server. `setData(from:)` and `addDocument(from:)` do not wait. These
/// forms have another label because Swift selects an `async` overload in every `async` context, where calls of
/// `setData(from:)` without `await` would no longer compile.
extension DocumentReference {
    /// Creates or replaces the document with an encodable value, and waits until the server has committed it.
    /// - Parameters:
    ///   - value: the value, which must encode to an object.
    ///   - encoder: encodes `value` to fields.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object; an `NSError` of `FirestoreErrorDomain`
    ///   with the server's code; `CancellationError` when the task is cancelled, while the write remains queued.
    nonisolated(nonsending) public func setData<T: Encodable>(
        encoding value: T, encoder: Firestore.Encoder = Firestore.Encoder()
    ) async throws {
        try await setData(encoder.encode(value))
    }

    /// Merges an encodable value into the document, or replaces the document, and waits until the server has committed
    /// it.
    /// - Parameters:
    ///   - value: the value, which must encode to an object.
    ///   - merge: true retains all fields that the encoded value does not contain; false replaces the document.
    ///   - encoder: encodes `value` to fields.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object; an `NSError` of `FirestoreErrorDomain`
    ///   with the server's code; `CancellationError` when the task is cancelled, while the write remains queued.
    nonisolated(nonsending) public func setData<T: Encodable>(
        encoding value: T, merge: Bool, encoder: Firestore.Encoder = Firestore.Encoder()
    ) async throws {
        try await setData(encoder.encode(value), merge: merge)
    }

    /// Writes only the given fields of an encodable value, and waits until the server has committed them.
    /// - Parameters:
    ///   - value: the value, which must encode to an object.
    ///   - mergeFields: field paths, as strings with dots or as `FieldPath`s. Each must occur in the encoded value.
    ///   - encoder: encodes `value` to fields.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object; an `NSError` of `FirestoreErrorDomain`
    ///   with the server's code; `CancellationError` when the task is cancelled, while the write remains queued.
    nonisolated(nonsending) public func setData<T: Encodable>(
        encoding value: T, mergeFields: [Any], encoder: Firestore.Encoder = Firestore.Encoder()
    ) async throws {
        try await setData(encoder.encode(value), mergeFields: mergeFields)
    }
}

extension CollectionReference {
    /// Creates a document with a random id from an encodable value, and waits until the server has committed it.
    /// - Parameters:
    ///   - value: the value, which must encode to an object.
    ///   - encoder: encodes `value` to fields.
    /// - Returns: the reference to the new document.
    /// - Throws: `EncodingError` when the value cannot be encoded to an object; an `NSError` of `FirestoreErrorDomain`
    ///   with the server's code; `CancellationError` when the task is cancelled, while the write remains queued.
    @discardableResult
    nonisolated(nonsending) public func addDocument<T: Encodable>(
        encoding value: T, encoder: Firestore.Encoder = Firestore.Encoder()
    ) async throws -> DocumentReference {
        try await addDocument(data: encoder.encode(value))
    }
}
