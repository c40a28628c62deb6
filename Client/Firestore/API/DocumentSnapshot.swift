internal import Foundation
internal import HearthModel
internal import HearthSync

/// A document at one moment, or that there was none.
public class DocumentSnapshot: @unchecked Sendable, Hashable {
    // All constants: `@unchecked` only because the class has a subclass.
    let firestore: Firestore
    let key: ResourcePath
    /// nil when it doesn't exist.
    let document: ClientDocument?
    public let metadata: SnapshotMetadata

    init(firestore: Firestore, key: ResourcePath, document: ClientDocument?, metadata: SnapshotMetadata) {
        self.firestore = firestore
        self.key = key
        self.document = document
        self.metadata = metadata
    }

    public var exists: Bool { document != nil }

    public var reference: DocumentReference { DocumentReference(firestore: firestore, key: key) }

    public var documentID: String { key.segments[key.segments.count - 1] }

    /// nil when the document doesn't exist. Numbers and booleans are `NSNumber`, see `UserDataWriter`.
    @discardableResult
    public func data() -> [String: Any]? { data(with: .none) }

    @discardableResult
    public func data(with serverTimestampBehavior: ServerTimestampBehavior) -> [String: Any]? {
        document.map { fields($0, serverTimestampBehavior) }
    }

    func fields(_ document: ClientDocument, _ behavior: ServerTimestampBehavior) -> [String: Any] {
        UserDataWriter(firestore: firestore, behavior: behavior).map(document.fields)
    }

    /// - Parameter field: a dotted text or a `FieldPath`.
    /// - Returns: nil when the field, or the document, doesn't exist.
    @discardableResult
    public func get(_ field: Any) -> Any? { get(field, serverTimestampBehavior: .none) }

    @discardableResult
    public func get(_ field: Any, serverTimestampBehavior: ServerTimestampBehavior) -> Any? {
        let path = orTrap { () throws(Status) in try FieldPath.parse(any: field, what: "Field in get()") }
        if path.isDocumentName { return reference }
        return document?.fields[path: path].map {
            UserDataWriter(firestore: firestore, behavior: serverTimestampBehavior).value($0)
        }
    }

    public subscript(field: Any) -> Any? { self.get(field) }

    /// - Throws: `DecodingError` when the data doesn't fit, and when the document doesn't exist, unless `T` is optional.
    @discardableResult
    public func data<T: Decodable>(
        as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
        decoder: Firestore.Decoder = Firestore.Decoder()
    ) throws -> T {
        try decoder.decode(type, from: data(with: serverTimestampBehavior) ?? NSNull(), in: reference)
    }

    public static func == (left: DocumentSnapshot, right: DocumentSnapshot) -> Bool {
        left.firestore === right.firestore && left.key == right.key && left.metadata == right.metadata
            && left.document == right.document
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(key)
        hasher.combine(document?.version)
        hasher.combine(metadata)
    }
}

/// A document that a query found: it exists.
public final class QueryDocumentSnapshot: DocumentSnapshot, @unchecked Sendable {
    private let found: ClientDocument

    init(firestore: Firestore, found: ClientDocument, metadata: SnapshotMetadata) {
        self.found = found
        super.init(firestore: firestore, key: found.key, document: found, metadata: metadata)
    }

    @discardableResult
    public override func data() -> [String: Any] { fields(found, .none) }

    @discardableResult
    public override func data(with serverTimestampBehavior: ServerTimestampBehavior) -> [String: Any] {
        fields(found, serverTimestampBehavior)
    }
}
