internal import Foundation
internal import HearthModel
internal import HearthSync

/// Gives each change of a view its place before and after.
enum ChangeIndexes {
    private static let none = UInt(NSNotFound)

    static func changes(
        of view: ViewSnapshot, includeMetadataChanges: Bool, snapshot: (ClientDocument) -> QueryDocumentSnapshot
    ) -> [DocumentChange] {
        if view.oldDocuments.isEmpty {
            // The first: all added, in their order.
            return view.changes.enumerated().map { index, change in
                DocumentChange(
                    type: .added, document: snapshot(change.document), oldIndex: none, newIndex: UInt(index))
            }
        }
        let orders = QueryOrders(view.query)
        var places = view.oldDocuments.documents
        var old: [ResourcePath: ClientDocument] = [:]
        for document in places { old[document.key] = document }
        var changes: [DocumentChange] = []
        for change in view.changes {
            if change.kind == .metadata, !includeMetadataChanges {
                // Stands where it stood.
                if let before = old[change.document.key] {
                    places[position(of: before, in: places, orders)] = change.document
                }
                continue
            }
            var oldIndex = none
            if let before = old[change.document.key], change.kind != .added {
                let index = position(of: before, in: places, orders)
                places.remove(at: index)
                oldIndex = UInt(index)
            }
            var newIndex = none
            if change.kind != .removed {
                let index = position(of: change.document, in: places, orders)
                places.insert(change.document, at: index)
                newIndex = UInt(index)
            }
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

    /// Where the document stands, or would.
    private static func position(
        of document: ClientDocument, in documents: [ClientDocument], _ orders: QueryOrders
    ) -> Int {
        var low = 0
        var high = documents.count
        while low < high {
            let middle = (low + high) / 2
            if orders.compare(documents[middle], document) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
