import HearthModel

/// The documents of a view, in its query's order, found by key too.
public struct DocumentSet: Sendable {
    public private(set) var documents: [ClientDocument]

    public init(sorted documents: [ClientDocument] = []) { self.documents = documents }

    public var count: Int { documents.count }
    public var isEmpty: Bool { documents.isEmpty }
    public subscript(key: ResourcePath) -> ClientDocument? { documents.first { $0.key == key } }
}
