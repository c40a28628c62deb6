/// A selection of a location's children, and their order.
package struct TreeQuery: Hashable, Sendable {
    package enum Index: Hashable, Sendable {
        case priority
        case key
        case value
        /// The value at a path inside the child.
        case child(TreePath)
    }

    /// A key that a bound names: one of the tree's, or a sentinel before or after all of them.
    package enum BoundKey: Hashable, Sendable {
        case min
        case max
        /// Need not be a valid key: SDKs compute the next possible one.
        case key(TreeKey)
    }

    /// One end of the window: a value on the index and a key. On the key index only `key` counts.
    package struct Bound: Hashable, Sendable {
        /// Nil for null.
        package var value: Scalar?
        package var key: BoundKey
        /// Whether a child with exactly this value and key belongs to the window.
        package var isInclusive: Bool

        package init(value: Scalar?, key: BoundKey, isInclusive: Bool = true) {
            self.value = value
            self.key = key
            self.isInclusive = isInclusive
        }
    }

    package var index: Index = .priority
    package var start: Bound?
    package var end: Bound?
    /// The maximum number of children, 1 to 2³¹ − 1.
    package var limit: Int?
    /// Whether the limit counts from the end.
    package var isLimitedToLast = false

    package init() {}

    /// Whether the window has all children: no bounds, no limit. Such a query is listened to as a location without one.
    package var isUnfiltered: Bool { start == nil && end == nil && limit == nil }
}
