internal import Foundation
internal import HearthModel
internal import HearthSync

/// The state of a document in the result of a query. The document exists.
public final class QueryDocumentSnapshot: DocumentSnapshot, @unchecked Sendable {
    private let found: ClientDocument

    init(
        firestore: Firestore, found: ClientDocument, metadata: SnapshotMetadata,
        readTime: HearthModel.Timestamp = .none
    ) {
        self.found = found
        super.init(
            firestore: firestore, key: found.key, document: found, metadata: metadata, readTime: readTime)
    }

    /// All fields. Pending server timestamps are null.
    /// - Returns: the fields.
    @discardableResult
    public override func data() -> [String: Any] { fields(found, .none) }

    /// All fields.
    /// - Parameter serverTimestampBehavior: the value of server timestamps whose write is pending: null, an estimate or
    ///   the previous value.
    /// - Returns: the fields.
    @discardableResult
    public override func data(with serverTimestampBehavior: ServerTimestampBehavior) -> [String: Any] {
        fields(found, serverTimestampBehavior)
    }
}
