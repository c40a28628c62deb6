import HearthTree
import HearthTreeStorage

/// Makes the events of a commit for listeners without a query; listeners with the same event share one object.
final class HubPushes {
    private let commit: TreeCommit
    private var made: [[Int]: RealtimePush] = [:]

    init(_ commit: TreeCommit) {
        self.commit = commit
    }

    func plain(for route: HubRoute) -> RealtimeEvent.Change? {
        if route.location.plain.isEmpty { return nil }
        if let above = route.above {
            let change = commit.changes[above]
            let part = route.part ?? change.node.node(at: route.location.path.relative(to: change.path))
            return .push(RealtimePush(.put(route.location.path, part)))
        }
        if let known = made[route.inside] { return .push(known) }
        let push = RealtimePush(kind(route.inside))
        made[route.inside] = push
        return .push(push)
    }

    private func kind(_ indexes: [Int]) -> RealtimePush.Kind {
        let isWhole = indexes.count == commit.changes.count
        if indexes.count == 1, commit.base == nil || !isWhole {
            let change = commit.changes[indexes[0]]
            return .put(change.path, change.node)
        }
        let base = isWhole ? commit.base ?? common(indexes) : common(indexes)
        let changes = RealtimePush.ordered(indexes.map { commit.changes[$0] })
        return .merge(base, changes.map { ($0.path.relative(to: base), $0.node) })
    }

    /// The lowest common location of several changes.
    private func common(_ indexes: [Int]) -> TreePath {
        var base = commit.changes[indexes[0]].path.parent ?? .root
        for index in indexes {
            while !base.contains(commit.changes[index].path) || base == commit.changes[index].path {
                base = base.parent ?? .root
            }
        }
        return base
    }
}
