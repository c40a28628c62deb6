import HearthTree

/// What rules say of a write.
package enum TreeVerdict: Sendable {
    case allowed
    case denied(TreeDenial)

    package var isAllowed: Bool { if case .allowed = self { true } else { false } }
}

/// Why a write is denied: for logs. Clients are told no more than that it is.
package struct TreeDenial: Sendable, CustomStringConvertible {
    package enum Reason: Sendable {
        /// No `.write` at the place or above it holds.
        case notGranted
        /// The `.validate` at a line and a column of the rules doesn't hold.
        case invalid(line: Int, column: Int)
        /// To judge took more steps than a decision may.
        case exhausted
    }

    package var path: TreePath
    package var reason: Reason

    package var description: String {
        switch reason {
        case .notGranted: "no .write rule at \(path) or above it holds"
        case .invalid(let line, let column): "the .validate rule in line \(line), column \(column) fails for \(path)"
        case .exhausted: "the rules take too long for this write, at \(path)"
        }
    }
}
