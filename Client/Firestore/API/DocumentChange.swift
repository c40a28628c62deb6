internal import Foundation

/// The change of one document between two snapshots.
public final class DocumentChange: Sendable, Hashable {
    /// The kind of the change.
    public let type: DocumentChangeType
    /// The new state of the document; for a removal the old state.
    public let document: QueryDocumentSnapshot
    /// The index of the document after all previous changes of the list; `UInt(NSNotFound)` for an addition.
    public let oldIndex: UInt
    /// The index of the document after this change; `UInt(NSNotFound)` for a removal.
    public let newIndex: UInt

    init(type: DocumentChangeType, document: QueryDocumentSnapshot, oldIndex: UInt, newIndex: UInt) {
        self.type = type
        self.document = document
        self.oldIndex = oldIndex
        self.newIndex = newIndex
    }

    public static func == (left: DocumentChange, right: DocumentChange) -> Bool {
        left.type == right.type && left.document == right.document && left.oldIndex == right.oldIndex
            && left.newIndex == right.newIndex
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(document)
        hasher.combine(oldIndex)
        hasher.combine(newIndex)
    }
}
