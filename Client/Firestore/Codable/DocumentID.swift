internal import Foundation

/// A type that `@DocumentID` supports.
public protocol DocumentIDWrappable {
    /// Converts a reference to the property's value.
    /// - Parameter documentReference: the reference to the decoded document.
    /// - Returns: the property's value.
    /// - Throws: an error when the value cannot be converted; decoding then fails with it.
    static func wrap(_ documentReference: DocumentReference) throws -> Self
}

extension String: DocumentIDWrappable {
    /// The document's id.
    /// - Parameter documentReference: the reference to the decoded document.
    /// - Returns: the last segment of the path.
    /// - Throws: nothing.
    public static func wrap(_ documentReference: DocumentReference) throws -> String { documentReference.documentID }
}

extension DocumentReference: DocumentIDWrappable {
    /// The reference, unchanged.
    /// - Parameter documentReference: the reference to the decoded document.
    /// - Returns: the reference.
    /// - Throws: nothing.
    public static func wrap(_ documentReference: DocumentReference) throws -> Self {
        guard let reference = documentReference as? Self else { fatalError("DocumentReference has no subclasses.") }
        return reference
    }
}

/// A property with the document's id or reference. It is set when the document is decoded, and never written.
@propertyWrapper
public struct DocumentID<Value: DocumentIDWrappable & Codable> {
    private var value: Value?

    /// A property with a value, which is usually nil.
    /// - Parameter value: usually nil; another value is ignored when the document is written.
    public init(wrappedValue value: Value?) {
        if let value { Self.warn(of: value) }
        self.value = value
    }

    /// The id or the reference; nil when the value was not decoded from a document.
    public var wrappedValue: Value? {
        get { value }
        set {
            if let newValue { Self.warn(of: newValue) }
            value = newValue
        }
    }

    private static func warn(of value: Value) {
        Log.warning(
            "Attempting to initialize or set a @DocumentID property with a non-nil value: \"\(value)\". The document ID is "
                + "managed by Firestore and any value will be ignored when the document is written.")
    }

    private init(decoded value: Value) { self.value = value }
}

/// The id is not a field of the document. A field with the property's name is ignored.
extension DocumentID: OmittedProperty {}

extension DocumentID: Codable {
    public init(from decoder: any Swift.Decoder) throws {
        guard let reference = decoder.userInfo[.documentReference] as? DocumentReference else {
            throw FirestoreDecodingError.decodingIsNotSupported(
                "DocumentID values can only be decoded with Firestore.Decoder, which needs the document.")
        }
        self.init(decoded: try Value.wrap(reference))
    }

    public func encode(to encoder: any Swift.Encoder) throws {
        throw FirestoreEncodingError.encodingIsNotSupported(
            "DocumentID values can only be encoded with Firestore.Encoder, as properties of an object.")
    }
}

extension DocumentID: Equatable where Value: Equatable {}
extension DocumentID: Hashable where Value: Hashable {}
extension DocumentID: Sendable where Value: Sendable {}
