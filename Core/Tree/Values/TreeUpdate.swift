/// The changes of one write, which are atomic.
package struct TreeUpdate: Equatable, Sendable {
    /// The location of the write.
    package let path: TreePath
    /// At absolute paths, none of which contains another.
    package let changes: [TreeChange]
    /// Whether it replaces some children of `path` and keeps the others.
    package let isMerge: Bool

    private init(path: TreePath, changes: [TreeChange], isMerge: Bool) {
        self.path = path
        self.changes = changes
        self.isMerge = isMerge
    }

    /// Replaces the value of a location.
    package static func set(_ path: TreePath, _ node: Node) -> TreeUpdate {
        TreeUpdate(path: path, changes: [TreeChange(path: path, node: node)], isMerge: false)
    }

    /// Replaces the values of locations below `path`. A name is a key or a path; its last key may be `.priority`.
    package static func merge(
        at path: TreePath, members: [(name: String, node: Node)], limits: TreeLimits = .standard
    ) throws(TreeDataError) -> TreeUpdate {
        let limits = limits.below(path)
        var changes: [TreeChange] = []
        for (name, node) in members {
            let change = TreeChange(path: try limits.path(name, allowingPriority: true), node: node)
            guard !change.path.isRoot else { throw .invalidPath }
            if change.isPriority { try check(priority: node) }
            changes.append(change)
        }
        return try TreeUpdate(at: path, changes: changes)
    }

    private static func check(priority: Node) throws(TreeDataError) {
        switch priority.value {
        case .integer, .double, .string, .deferred: return
        case .bool: break
        case nil: if priority.isEmpty { return }
        }
        throw TreeDataError("Invalid data; .priority has to be a number or a string.")
    }

    /// - Parameter changes: at paths relative to `path`.
    init(at path: TreePath, changes: [TreeChange]) throws(TreeDataError) {
        try Self.checkOverlap(changes)
        self.init(
            path: path, changes: changes.map { TreeChange(path: path + $0.path, node: $0.node) }, isMerge: true)
    }

    /// When sorted, a path is followed directly by one that it contains, if there is any.
    private static func checkOverlap(_ changes: [TreeChange]) throws(TreeDataError) {
        let paths = changes.map(\.path).sorted { $0.keys.lexicographicallyPrecedes($1.keys) }
        for (path, next) in zip(paths, paths.dropFirst()) where path.contains(next) {
            throw TreeDataError("Invalid data; an update can't have both \(path.string) and \(next.string).")
        }
    }
}
