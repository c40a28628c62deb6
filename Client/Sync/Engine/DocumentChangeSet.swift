import HearthModel

/// Changes of a view's documents since its last snapshot, one change per document.
struct DocumentChangeSet {
    private(set) var changes: [ResourcePath: ViewSnapshot.Change] = [:]

    var isEmpty: Bool { changes.isEmpty }

    /// Adds a change and merges it with an earlier change of the same document.
    mutating func add(_ change: ViewSnapshot.Change) {
        let key = change.document.key
        guard let earlier = changes[key] else {
            changes[key] = change
            return
        }
        switch (earlier.kind, change.kind) {
        case (.added, .modified), (.added, .metadata):
            changes[key] = ViewSnapshot.Change(kind: .added, document: change.document)
        case (.added, .removed): changes[key] = nil
        case (.modified, .modified), (.modified, .metadata):
            changes[key] = ViewSnapshot.Change(kind: .modified, document: change.document)
        case (.modified, .removed):
            changes[key] = ViewSnapshot.Change(kind: .removed, document: earlier.document)
        case (.metadata, .modified), (.metadata, .metadata), (.metadata, .removed): changes[key] = change
        case (.removed, .added):
            changes[key] = ViewSnapshot.Change(kind: .modified, document: change.document)
        case (.added, .added), (.modified, .added), (.metadata, .added), (.removed, .removed), (.removed, .modified),
            (.removed, .metadata):
            preconditionFailure("a document cannot be \(change.kind) after it was \(earlier.kind)")
        }
    }

    /// Removals, then additions, then the rest; each group in the query's order.
    /// - Parameter documents: the view's documents after the changes.
    func sorted(in documents: DocumentSet) -> [ViewSnapshot.Change] {
        if changes.count == documents.count, changes.count > 1, changes.values.allSatisfy({ $0.kind == .added }) {
            // All of them are new: they are already in order.
            return documents.map { ViewSnapshot.Change(kind: .added, document: $0) }
        }
        let comparator = documents.comparator
        return changes.values.sorted { left, right in
            let groups = (min(left.kind.rawValue, 2), min(right.kind.rawValue, 2))
            return groups.0 != groups.1
                ? groups.0 < groups.1 : comparator.compare(left.document, right.document) < 0
        }
    }
}
