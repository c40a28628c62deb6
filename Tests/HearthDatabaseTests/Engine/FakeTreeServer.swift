import HearthModel
import HearthTestSupport
import HearthTree

@testable import HearthDatabase

/// A server of one database, as short as possible.
final class FakeTreeServer {
    private(set) var tree = Node.empty
    private(set) var version = 0
    private(set) var lastChanges: [TreeChange] = []
    /// The tree after each version.
    private(set) var history: [Node] = [.empty]
    private(set) var sessions: [FakeTreeSession] = []
    var now: Int64 = 1_000_000
    /// Selects the refused writes by the locations that they change.
    var refuses: (TreePath) -> Bool = { _ in false }
    var refusesReading: (TreePath) -> Bool = { _ in false }
    var random = SeededGenerator(seed: 0)

    func open(_ session: FakeTreeSession) { sessions.append(session) }

    func close(_ session: FakeTreeSession) {
        sessions.removeAll { $0 === session }
        let changes = session.onDisconnect.map { TreeChange(path: $0.path, node: $0.node) }
        if !changes.isEmpty { commit(changes) }
    }

    /// Makes a write of another client.
    func commit(_ changes: [TreeChange]) {
        let old = tree
        let resolved = changes.map { $0.settled(nowMilliseconds: now, old: old) }
        tree = old.applying(resolved)
        lastChanges = resolved
        version += 1
        history.append(tree)
        for session in sessions { session.push(resolved, old: old) }
    }

    func set(_ node: Node, at path: TreePath) { commit([TreeChange(path: path, node: node)]) }

    /// - Returns: nil for `ok`.
    func write(_ changes: [TreeChange], hash: String?) -> WireFailure? {
        if let hash, let change = changes.first, tree.node(at: change.path).hash != hash {
            return WireFailure("datastale")
        }
        if changes.contains(where: { refuses($0.location) }) {
            return WireFailure("permission_denied", "Permission denied")
        }
        commit(changes)
        return nil
    }
}

/// The server's side of a client's connection. Its messages to the client wait until they are delivered.
final class FakeTreeSession {
    struct Listen {
        let path: TreePath
        let query: TreeQuery?
        let tag: Int?
    }

    let server: FakeTreeServer
    var listens: [Listen] = []
    var onDisconnect: [(path: TreePath, node: Node)] = []
    private(set) var messages: [(version: Int, deliver: (FakeTreeConnection) -> Void)] = []

    init(_ server: FakeTreeServer) { self.server = server }

    func send(_ deliver: @escaping (FakeTreeConnection) -> Void) { messages.append((server.version, deliver)) }

    func next() -> (version: Int, deliver: (FakeTreeConnection) -> Void)? {
        messages.isEmpty ? nil : messages.removeFirst()
    }

    func listen(_ path: TreePath, _ query: TreeQuery?, _ tag: Int?, hash: ListenHash, listen id: Int) {
        if server.refusesReading(path) {
            return send { $0.refused(id, WireFailure("permission_denied", "Permission denied")) }
        }
        let node = server.tree.node(at: path)
        let data = query.map { $0.result(of: node) } ?? node
        if data.hash != hash.simple {
            if let compound = hash.compound, let parts = try? CompoundHash(wire: Self.wire(compound)) {
                let ranges = parts.differences(from: data)
                send { $0.received(ranges: ranges, at: path, tag: tag) }
            } else {
                send { $0.received(data, at: path, tag: tag) }
            }
        }
        listens.append(Listen(path: path, query: query, tag: tag))
        send { $0.answered(id) }
    }

    private static func wire(_ hash: CompoundListenHash) -> JSONValue {
        .object([
            ("hs", .array(hash.hashes.map { .string($0) })),
            ("ps", .array(hash.paths.map { .string($0.isRoot ? "/" : $0.string) })),
        ])
    }

    func unlisten(_ path: TreePath, _ query: TreeQuery?, _ tag: Int?) {
        listens.removeAll { $0.path == path && $0.tag == tag }
        send { $0.unlistened(path, query) }
    }

    func push(_ changes: [TreeChange], old: Node) {
        var sentWhole = Set<TreePath>()
        for listen in listens {
            if let query = listen.query, let tag = listen.tag {
                pushWindow(query, tag, at: listen.path, old: old)
            } else if sentWhole.insert(listen.path).inserted {
                pushWhole(changes, at: listen.path)
            }
        }
    }

    private func pushWhole(_ changes: [TreeChange], at path: TreePath) {
        let parts = changes.compactMap { change -> TreeChange? in
            if path.contains(change.location) {
                return TreeChange(path: change.path.relative(to: path), node: change.node)
            }
            guard !change.isPriority, change.path.contains(path) else { return nil }
            return TreeChange(path: .root, node: change.node.node(at: path.relative(to: change.path)))
        }
        if parts.count == 1 {
            send { $0.received(parts[0].node, at: path + parts[0].path, tag: nil) }
        } else if !parts.isEmpty {
            send { $0.received(merge: parts.map { ($0.path, $0.node) }, at: path, tag: nil) }
        }
    }

    private func pushWindow(_ query: TreeQuery, _ tag: Int, at path: TreePath, old: Node) {
        let before = query.result(of: old.node(at: path))
        let after = query.result(of: server.tree.node(at: path))
        if before == after { return }
        if after.isEmpty { return send { $0.received(.empty, at: path, tag: tag) } }
        var members: [(path: TreePath, node: Node)] = []
        for key in Set(before.children.map(\.key)).union(after.children.map(\.key)).sorted() {
            let (left, right) = (before.child(key), after.child(key))
            if left == right { continue }
            // A change inside a child that stays may be sent in parts.
            if left.childCount > 0, right.childCount > 0, left.priority == right.priority, server.random.below(2) == 0 {
                for inner in Set(left.children.map(\.key)).union(right.children.map(\.key)).sorted()
                where left.child(inner) != right.child(inner) {
                    members.append((TreePath(keys: [key, inner]), right.child(inner)))
                }
            } else {
                members.append((TreePath(keys: [key]), right))
            }
        }
        if members.count == 1 {
            send { $0.received(members[0].node, at: path + members[0].path, tag: tag) }
        } else {
            send { $0.received(merge: members, at: path, tag: tag) }
        }
    }
}
