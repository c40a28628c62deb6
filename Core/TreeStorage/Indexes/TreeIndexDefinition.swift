import HearthModel
import HearthTree

/// The children that have entries in an index, and their order: an `.indexOn` of the rules.
package struct TreeIndexDefinition: Hashable, Sendable {
    /// The locations whose children are indexed, key by key; a key that begins with `$` matches any key.
    package var pattern: [String]
    /// `.value` or `.child`: keys and priorities need no definition.
    package var index: TreeQuery.Index

    package init(pattern: [String], index: TreeQuery.Index) {
        self.pattern = pattern
        self.index = index
    }

    package static func == (lhs: TreeIndexDefinition, rhs: TreeIndexDefinition) -> Bool {
        lhs.index == rhs.index && lhs.pattern.count == rhs.pattern.count
            && zip(lhs.pattern, rhs.pattern).allSatisfy { UTF8Order.equal($0, $1) }
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(index)
        for part in pattern { UTF8Order.hash(part, into: &hasher) }
    }
}
