internal import Foundation
internal import HearthModel
internal import HearthSync

/// The state of a document at one time. The document may not exist.
public class DocumentSnapshot: @unchecked Sendable, Hashable {
    // All properties are constants: `@unchecked` is needed only because the class has a subclass.
    let firestore: Firestore
    let key: ResourcePath
    /// nil when the document does not exist.
    let document: ClientDocument?
    let readTime: HearthModel.Timestamp
    /// Whether the snapshot is from the cache, and whether it contains local writes.
    public let metadata: SnapshotMetadata

    /// - Parameter readTime: the version of the server's data that was read, when it is later than the document's.
    init(
        firestore: Firestore, key: ResourcePath, document: ClientDocument?, metadata: SnapshotMetadata,
        readTime: HearthModel.Timestamp = .none
    ) {
        self.firestore = firestore
        self.key = key
        self.document = document
        self.metadata = metadata
        self.readTime = readTime
    }

    /// Whether the document exists.
    public var exists: Bool { document != nil }

    /// The reference to the document.
    public var reference: DocumentReference { DocumentReference(firestore: firestore, key: key) }

    /// The last segment of the document's path.
    public var documentID: String { key.segments[key.segments.count - 1] }

    /// All fields. Numbers and Booleans are `NSNumber`: on Linux only these can be cast to every number type of Swift.
    /// Pending server timestamps are null.
    /// - Returns: the fields; nil when the document does not exist.
    @discardableResult
    public func data() -> [String: Any]? { data(with: .none) }

    /// All fields.
    /// - Parameter serverTimestampBehavior: the value of server timestamps whose write is pending: null, an estimate or
    ///   the previous value.
    /// - Returns: the fields; nil when the document does not exist.
    @discardableResult
    public func data(with serverTimestampBehavior: ServerTimestampBehavior) -> [String: Any]? {
        document.map { fields($0, serverTimestampBehavior) }
    }

    func fields(_ document: ClientDocument, _ behavior: ServerTimestampBehavior) -> [String: Any] {
        UserDataWriter(firestore: firestore, behavior: behavior).map(document.fields)
    }

    /// The value of a field.
    /// - Parameter field: a string with dots or a `FieldPath`. Any other type ends the program.
    /// - Returns: the value; `NSNull` for null, nil when the field or the document does not exist.
    @discardableResult
    public func get(_ field: Any) -> Any? { get(field, serverTimestampBehavior: .none) }

    /// The value of a field.
    /// - Parameters:
    ///   - field: a string with dots or a `FieldPath`. Any other type ends the program.
    ///   - serverTimestampBehavior: the value of server timestamps whose write is pending: null, an estimate or the
    ///     previous value.
    /// - Returns: the value; `NSNull` for null, nil when the field or the document does not exist.
    @discardableResult
    public func get(_ field: Any, serverTimestampBehavior: ServerTimestampBehavior) -> Any? {
        let path = orTrap { () throws(Status) in try FieldPath.parse(any: field, what: "Field in get()") }
        if path.isDocumentName { return reference }
        return document?.fields[path: path].map {
            UserDataWriter(firestore: firestore, behavior: serverTimestampBehavior).value($0)
        }
    }

    /// The value of a field.
    /// - Parameter field: a string with dots or a `FieldPath`. Any other type ends the program.
    /// - Returns: the value; `NSNull` for null, nil when the field or the document does not exist.
    public subscript(field: Any) -> Any? { self.get(field) }

    /// Decodes the document.
    /// - Parameters:
    ///   - type: the type of the result. An optional type decodes a document that does not exist as nil.
    ///   - serverTimestampBehavior: the value of server timestamps whose write is pending: null, an estimate or the
    ///     previous value.
    ///   - decoder: decodes the data: its strategies determine the form of dates, data and keys.
    /// - Returns: the decoded value.
    /// - Throws: `DecodingError` when the data does not match the type, or when the document does not exist and `T` is
    ///   not optional.
    @discardableResult
    public func data<T: Decodable>(
        as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
        decoder: Firestore.Decoder = Firestore.Decoder()
    ) throws -> T {
        try decoder.decode(type, from: data(with: serverTimestampBehavior) ?? NSNull(), in: reference)
    }

    public static func == (left: DocumentSnapshot, right: DocumentSnapshot) -> Bool {
        left.firestore === right.firestore && left.key == right.key && left.metadata == right.metadata
            && (left.document.map { one in right.document.map { one.looksLike($0) } ?? false }
                ?? (right.document == nil))
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(key)
        hasher.combine(document?.version)
        hasher.combine(metadata)
    }
}
