import HearthModel
import HearthEngine
import HearthTree

/// A large write before it is in the tree: its records are staged in slices, and are added to the tree by a graft.
///
/// Belongs to the writer's thread once it is made.
final class TreeReplacement: @unchecked Sendable {
    let id: UInt32
    /// With all deferred values computed.
    let changes: [TreeChange]
    /// The version of the tree on which the values were computed; nil when they do not depend on it, or can be computed
    /// again.
    let basedOn: Int64?
    /// The changes that are computed again on the tree that the write finds in the end.
    private let updating: [Int]
    /// Those whose entries are staged.
    let indexIDs: [UInt32]
    let graft: TreeGraft
    private var walks: [ReplacementWalk]
    /// The alternative, when its locations are too many or one contains another.
    let wide: WideUpdate?

    /// - Parameter changes: none of which contains another's location; no priorities.
    init(id: UInt32, _ changes: [TreeChange], basedOn: Int64?, _ indexes: TreeIndexes) {
        self.id = id
        self.changes = changes
        self.basedOn = basedOn
        updating = []
        indexIDs = indexes.kept.map(\.id)
        wide = nil
        var ranges: [TreeGraft.Range] = []
        walks = []
        for change in changes {
            let location = PathCode.location(change.path)
            let below = indexes.belowOrAt(change.path)
            ranges.append(TreeGraft.Range(keyspace: .documents, prefix: location))
            ranges.append(TreeGraft.Range(keyspace: .entries, prefix: location))
            ranges.append(TreeGraft.Range(keyspace: .entries, prefix: TreeMutation.priorityPrefix(location)))
            for index in below { ranges.append(TreeGraft.Range(keyspace: .entries, prefix: index.prefix(location))) }
            if !change.node.isEmpty { walks.append(ReplacementWalk(change, location, below)) }
        }
        walks.reverse()
        graft = TreeGraft(id: id, ranges: ranges)
    }

    /// - Parameters:
    ///   - changes: any.
    ///   - updating: positions of those that are computed again in the end.
    init(
        wide id: UInt32, _ changes: [TreeChange], basedOn: Int64?, updating: [Int] = [], _ indexes: TreeIndexes
    ) {
        self.id = id
        self.changes = changes
        self.basedOn = basedOn
        self.updating = updating
        indexIDs = indexes.kept.map(\.id)
        walks = []
        wide = WideUpdate(id: id, changes)
        graft = TreeGraft(deltaOf: id)
    }

    /// Whether the values of such changes depend on so little of the tree that they are computed again after the rest
    /// is made. A counter that other clients write all the time must not block a large write.
    static func isUpdatable(_ changes: [TreeChange]) -> Bool {
        var left = nodesUpdatedMax
        for change in changes {
            left -= change.node.count(upTo: left + 1)
            if left < 0 { return false }
        }
        return true
    }

    private static let nodesUpdatedMax = 256

    /// Its changes on the tree that the write finds.
    /// - Parameter write: the write that it makes.
    func changes(of write: TreeWrite, on view: TreeView) throws(Status) -> [TreeChange] {
        if updating.isEmpty { return changes }
        var changes = changes
        for index in updating {
            changes[index] = try write.changes[index].resolved(nowMilliseconds: write.nowMilliseconds, old: view)
        }
        return changes
    }

    /// Whether its values may be computed on a tree that has changed.
    func isOutdated(_ recent: RecentTreeChanges) -> Bool {
        guard let version = basedOn else { return false }
        guard let wide else { return changes.contains { recent.since(version, at: $0.path) != .untouched } }
        guard let changed = recent.paths(since: version) else { return true }
        return changed.contains { wide.concerns($0) }
    }

    /// The next record to be staged.
    func next() -> (keyspace: Keyspace, record: StoreRecord)? {
        while let last = walks.indices.last {
            if let record = walks[last].next() { return record }
            walks.removeLast()
        }
        return nil
    }

    /// Whether a write can be made by ranges, of which there are some for each location.
    static func hasFewLocations(_ changes: [TreeChange], countMax: Int) -> Bool {
        if changes.count > countMax { return false }
        if changes.contains(where: \.isPriority) { return false }
        if changes.count == 1 { return true }
        let paths = changes.map(\.path).sorted { $0.keys.lexicographicallyPrecedes($1.keys) }
        return !zip(paths, paths.dropFirst()).contains { $0.contains($1) }
    }
}
