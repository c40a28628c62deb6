internal import Foundation
internal import HearthSync

/// The state of a document in the result of a query. The document exists.
public final class QueryDocumentSnapshot: DocumentSnapshot, @unchecked Sendable {
    private let found: ClientDocument

    init(firestore: Firestore, found: ClientDocument, metadata: SnapshotMetadata) {
        self.found = found
        super.init(firestore: firestore, key: found.key, document: found, metadata: metadata)
    }

    /// All fields.
    @discardableResult
    public override func data() -> [String: Any] { fields(found, .none) }

    /// All fields.
    /// - Parameter serverTimestampBehavior: the value of pending server timestamps.
    @discardableResult
    public override func data(with serverTimestampBehavior: ServerTimestampBehavior) -> [String: Any] {
        fields(found, serverTimestampBehavior)
    }
}
