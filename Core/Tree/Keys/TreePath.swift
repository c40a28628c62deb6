/// The location of a node: the keys from the root down.
package struct TreePath: Hashable, Sendable {
    package var keys: [TreeKey]

    package static let root = TreePath(keys: [])

    package init(keys: [TreeKey]) { self.keys = keys }

    /// Splits a string at `/`; empty parts are dropped. Keys are not checked: see `TreeLimits`.
    package init(_ string: String) {
        keys = string.utf8.split(separator: UInt8(ascii: "/")).map { TreeKey(String(Substring($0))) }
    }

    package var isRoot: Bool { keys.isEmpty }
    package var count: Int { keys.count }
    package var last: TreeKey? { keys.last }
    package var first: TreeKey? { keys.first }

    /// Nil for the root.
    package var parent: TreePath? { keys.isEmpty ? nil : TreePath(keys: Array(keys.dropLast())) }

    package func child(_ key: TreeKey) -> TreePath { TreePath(keys: keys + [key]) }

    package static func + (lhs: TreePath, rhs: TreePath) -> TreePath { TreePath(keys: lhs.keys + rhs.keys) }

    /// Whether `other` is this location or below it.
    package func contains(_ other: TreePath) -> Bool {
        other.keys.count >= keys.count && zip(keys, other.keys).allSatisfy { $0 == $1 }
    }

    /// The rest of the path from `ancestor`, which must contain this location.
    package func relative(to ancestor: TreePath) -> TreePath {
        precondition(ancestor.contains(self), "\(ancestor) does not contain \(self)")
        return TreePath(keys: Array(keys.dropFirst(ancestor.count)))
    }

    /// Without a leading slash: `a/b`; empty for the root.
    package var string: String { keys.lazy.map(\.string).joined(separator: "/") }
}

extension TreePath: ExpressibleByStringLiteral, CustomStringConvertible {
    package init(stringLiteral value: String) { self.init(value) }
    /// With a leading slash: `/a/b`; `/` for the root.
    package var description: String { "/" + string }
}
