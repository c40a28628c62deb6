import HearthHost
import HearthTree

/// The positions of a query's children, in the order of the query.
typealias SortedPositions = SortedChunks<FilteredWindow.Position>

extension SortedChunks where Element == FilteredWindow.Position {
    /// - Parameter positions: in the order of the index, whatever the direction of the query is.
    init(_ positions: [Element], isReversed: Bool) {
        self.init(isReversed ? positions.reversed() : positions) { lhs, rhs in
            let (left, right) = isReversed ? (rhs, lhs) : (lhs, rhs)
            let order = TreeIndexValue.compare(left.value, right.value)
            return order != 0 ? order < 0 : left.key < right.key
        }
    }
}
