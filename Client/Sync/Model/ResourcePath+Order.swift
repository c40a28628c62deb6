import HearthModel

extension ResourcePath {
    /// Segment by segment, numeric ids first; negative, zero or positive.
    static func compare(_ lhs: ResourcePath, _ rhs: ResourcePath) -> Int {
        let shared = min(lhs.segments.count, rhs.segments.count)
        for index in 0..<shared {
            let order = ValueOrder.compareSegments(lhs.segments[index], rhs.segments[index])
            if order != 0 { return order }
        }
        return lhs.segments.count - rhs.segments.count
    }

    /// Whether this path is `other` or an ancestor of it.
    func isPrefix(of other: ResourcePath) -> Bool {
        segments.count <= other.segments.count && zip(segments, other.segments).allSatisfy { UTF8Order.equal($0, $1) }
    }

    /// Whether this path is the direct parent of `other`.
    func isParent(of other: ResourcePath) -> Bool {
        segments.count + 1 == other.segments.count && isPrefix(of: other)
    }

    /// The id of the collection in which a document is.
    var collectionID: String { segments[segments.count - 2] }

    /// From a string of segments joined by `/`; an empty one is the root.
    init(string: String) {
        self.init(string.isEmpty ? [] : string.split(separator: "/", omittingEmptySubsequences: false).map(String.init))
    }

    /// The path in a reference value, without the database; nil for a value that is not a document's name.
    init?(reference value: Value) {
        guard case .reference(let name) = value else { return nil }
        let segments = name.split(separator: "/", omittingEmptySubsequences: false)
        guard segments.count > 5 else { return nil }
        self.init(segments.dropFirst(5).map(String.init))
    }
}
