internal import Foundation
internal import HearthModel
internal import HearthSync

/// Computes the index of each change of a view before and after it.
enum ChangeIndexes {
    private static let none = UInt(NSNotFound)

    static func changes(
        of view: ViewSnapshot, includeMetadataChanges: Bool, snapshot: (ClientDocument) -> QueryDocumentSnapshot
    ) -> [DocumentChange] {
        if view.oldDocuments.isEmpty {
            // The first snapshot: all documents are added, in their order.
            return view.changes.enumerated().map { index, change in
                DocumentChange(
                    type: .added, document: snapshot(change.document), oldIndex: none, newIndex: UInt(index))
            }
        }
        var documents = view.oldDocuments
        var changes: [DocumentChange] = []
        for change in view.changes {
            let key = change.document.key
            let isWanted = change.kind != .metadata || includeMetadataChanges
            var oldIndex = none
            if change.kind != .added, let index = documents.index(of: key) {
                oldIndex = UInt(index)
                documents.remove(key)
            }
            var newIndex = none
            if change.kind != .removed {
                documents.insert(change.document)
                newIndex = documents.index(of: key).map { UInt($0) } ?? none
            }
            if !isWanted { continue }
            changes.append(
                DocumentChange(
                    type: type(of: change.kind), document: snapshot(change.document), oldIndex: oldIndex,
                    newIndex: newIndex))
        }
        return changes
    }

    private static func type(of kind: ViewSnapshot.Change.Kind) -> DocumentChangeType {
        switch kind {
        case .added: .added
        case .modified, .metadata: .modified
        case .removed: .removed
        }
    }
}
