import HearthTree

/// The result of rules for a write.
package enum TreeVerdict: Sendable {
    case allowed
    case denied(TreeDenial)

    package var isAllowed: Bool { if case .allowed = self { true } else { false } }
}

/// The reason of a denial, for logs. Clients only receive the denial.
package struct TreeDenial: Sendable, CustomStringConvertible {
    package enum Reason: Sendable {
        /// No `.write` at the location or above it holds.
        case notGranted
        /// The `.validate` at a line and a column of the rules does not hold.
        case invalid(line: Int, column: Int)
        /// The decision exceeded its limit of steps.
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
