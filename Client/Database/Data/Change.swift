import HearthCache
import HearthModel
import HearthTree

/// A validated write of the user: the request of a reference to the engine.
enum Change: Sendable {
    case set(Node)
    /// A leaf, or empty for none.
    case priority(Node)
    /// Locations below the reference's.
    case update([TreeChange])
    case onDisconnectSet(Node)
    case onDisconnectUpdate([TreeChange])
    case onDisconnectCancel

    static func set(_ value: Any?, at path: TreePath, _ call: String) throws(Status) -> Node {
        try Paths.checkWritable(path, call)
        return try ValueReader(call: call).node(value, at: path)
    }

    static func set(_ value: Any?, priority: Any?, at path: TreePath, _ call: String) throws(Status) -> Node {
        try Paths.checkWritable(path, call)
        return try ValueReader(call: call).node(value, priority: priority, at: path)
    }

    static func priority(_ value: Any?, at path: TreePath, _ call: String) throws(Status) -> Node {
        try Paths.checkWritable(path, call)
        return try ValueReader(call: call).priority(value, at: path).map { Node($0) } ?? .empty
    }

    static func update(_ values: [AnyHashable: Any], at path: TreePath, _ call: String) throws(Status) -> [TreeChange] {
        try Paths.checkWritable(path, call)
        let changes = try ValueReader(call: call).updates(values, at: path)
        for change in changes { try Paths.checkWritable(change.path, call) }
        return changes.map { TreeChange(path: $0.path.relative(to: path), node: $0.node) }
    }

    /// The write that a cache stores; nil for what it does not.
    func pendingWrite(at path: TreePath, madeAtMilliseconds time: Int64) -> PendingWrite? {
        let target: TreePath
        let changes: [TreeChange]
        var isMerge = false
        switch self {
        case .set(let node):
            target = path
            changes = [TreeChange(path: path, node: node)]
        case .priority(let priority):
            target = path.child(.priority)
            changes = [TreeChange(path: target, node: priority)]
        case .update(let members):
            if members.isEmpty { return nil }
            target = path
            changes = members.map { TreeChange(path: path + $0.path, node: $0.node) }
            isMerge = true
        case .onDisconnectSet, .onDisconnectUpdate, .onDisconnectCancel: return nil
        }
        return PendingWrite(id: 0, path: target, isMerge: isMerge, changes: changes, madeAtMilliseconds: time)
    }

    /// - Parameter entry: of the write in the disk's journal.
    func run(
        on engine: DatabaseEngine, at path: TreePath, _ entry: WriteJournal.Entry? = nil,
        completion: @escaping @Sendable (WireFailure?) -> Void
    ) {
        switch self {
        case .set(let node): engine.set(node, at: path, entry, completion: completion)
        case .priority(let priority): engine.setPriority(priority, at: path, entry, completion: completion)
        // An empty update needs no request.
        case .update([]), .onDisconnectUpdate([]): completion(nil)
        case .update(let changes): engine.update(changes.members, at: path, entry, completion: completion)
        case .onDisconnectSet(let node): engine.onDisconnectSet(node, at: path, completion: completion)
        case .onDisconnectUpdate(let changes):
            engine.onDisconnectUpdate(changes.members, at: path, completion: completion)
        case .onDisconnectCancel: engine.onDisconnectCancel(at: path, completion: completion)
        }
    }
}

extension [TreeChange] {
    fileprivate var members: [(path: TreePath, node: Node)] { map { ($0.path, $0.node) } }
}
