import HearthModel

/// Changes of a view's documents since its last snapshot, one change per document.
struct DocumentChangeSet {
    /// The first documents of a view, which are additions, and none of which is in `others`.
    private var added: DocumentSet?
    private var others: [ResourcePath: ViewSnapshot.Change] = [:]

    init() {}

    /// - Parameter added: all documents of a view that had none.
    init(added: DocumentSet) {
        if !added.isEmpty { self.added = added }
    }

    var isEmpty: Bool { added == nil && others.isEmpty }

    var keys: Set<ResourcePath> { added.map { Set($0.map(\.key)) } ?? Set(others.keys) }

    subscript(key: ResourcePath) -> ViewSnapshot.Change? {
        added?[key].map { ViewSnapshot.Change(kind: .added, document: $0) } ?? others[key]
    }

    /// Adds a change and merges it with an earlier change of the same document.
    mutating func add(_ change: ViewSnapshot.Change) {
        let key = change.document.key
        if let added {
            self.added = nil
            for document in added { others[document.key] = ViewSnapshot.Change(kind: .added, document: document) }
        }
        guard let earlier = others[key] else {
            others[key] = change
            return
        }
        switch (earlier.kind, change.kind) {
        case (.added, .modified), (.added, .metadata):
            others[key] = ViewSnapshot.Change(kind: .added, document: change.document)
        case (.added, .removed): others[key] = nil
        case (.modified, .modified), (.modified, .metadata):
            others[key] = ViewSnapshot.Change(kind: .modified, document: change.document)
        case (.modified, .removed):
            others[key] = ViewSnapshot.Change(kind: .removed, document: earlier.document)
        case (.metadata, .modified), (.metadata, .metadata), (.metadata, .removed): others[key] = change
        case (.removed, .added):
            others[key] = ViewSnapshot.Change(kind: .modified, document: change.document)
        case (.added, .added), (.modified, .added), (.metadata, .added), (.removed, .removed), (.removed, .modified),
            (.removed, .metadata):
            preconditionFailure("a document cannot be \(change.kind) after it was \(earlier.kind)")
        }
    }

    /// Removals, then additions, then the rest; each group in the query's order.
    /// - Parameter documents: the view's documents after the changes.
    func sorted(in documents: DocumentSet) -> [ViewSnapshot.Change] {
        if let added { return added.map { ViewSnapshot.Change(kind: .added, document: $0) } }
        let comparator = documents.comparator
        return others.values.sorted { left, right in
            let groups = (min(left.kind.rawValue, 2), min(right.kind.rawValue, 2))
            return groups.0 != groups.1
                ? groups.0 < groups.1 : comparator.compare(left.document, right.document) < 0
        }
    }
}
