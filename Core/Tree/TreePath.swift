/// Where a node is: the keys from the root down.
public struct TreePath: Hashable, Sendable {
    public var keys: [TreeKey]

    public static let root = TreePath(keys: [])

    public init(keys: [TreeKey]) { self.keys = keys }

    /// Takes a text apart at `/`; empty parts are dropped. Keys are not checked: see `TreeLimits`.
    public init(_ text: String) {
        keys = text.utf8.split(separator: UInt8(ascii: "/")).map { TreeKey(String(Substring($0))) }
    }

    public var isRoot: Bool { keys.isEmpty }
    public var count: Int { keys.count }
    public var last: TreeKey? { keys.last }
    public var first: TreeKey? { keys.first }

    /// Nil for the root.
    public var parent: TreePath? { keys.isEmpty ? nil : TreePath(keys: Array(keys.dropLast())) }

    public func child(_ key: TreeKey) -> TreePath { TreePath(keys: keys + [key]) }

    public static func + (lhs: TreePath, rhs: TreePath) -> TreePath { TreePath(keys: lhs.keys + rhs.keys) }

    /// Whether `other` is this place or below it.
    public func contains(_ other: TreePath) -> Bool {
        other.keys.count >= keys.count && zip(keys, other.keys).allSatisfy { $0 == $1 }
    }

    /// The rest of the way from `ancestor`, which has to contain this place.
    public func relative(to ancestor: TreePath) -> TreePath {
        precondition(ancestor.contains(self), "\(ancestor) does not contain \(self)")
        return TreePath(keys: Array(keys.dropFirst(ancestor.count)))
    }

    /// Without a leading slash: `a/b`; empty for the root.
    public var text: String { keys.lazy.map(\.text).joined(separator: "/") }
}

extension TreePath: ExpressibleByStringLiteral, CustomStringConvertible {
    public init(stringLiteral value: String) { self.init(value) }
    /// With a leading slash: `/a/b`; `/` for the root.
    public var description: String { "/" + text }
}
