import HearthModel
import HearthTree
@testable import HearthDatabase

final class GrowthConnection: DatabaseConnection {
    private struct Listen {
        let path: TreePath
        let query: TreeQuery?
        let tag: Int?
        let hash: () -> ListenHash
        let done: (WireFailure?) -> Void
    }

    private struct Write {
        let path: TreePath
        let changes: [TreeChange]
        let isMerge: Bool
        let done: (WireFailure?) -> Void
    }

    weak var delegate: (any DatabaseConnectionDelegate)?
    private var listens: [Listen] = []
    private var open: [TreePath: [Int?: Listen]] = [:]
    private var writes = AscendingList<Write>()
    private var lastWrite: Int64 = 0
    private var reads: [(Result<Node, WireFailure>) -> Void] = []
    private var server = Node.empty

    func answerListens(_ node: Node) {
        let asked = listens
        listens = []
        for listen in asked where open[listen.path]?[listen.tag] != nil {
            _ = listen.hash()
            server = server.setting(listen.path, to: node)
            delegate?.connectionDidReceive(data: node, at: listen.path, tag: listen.tag)
            listen.done(nil)
        }
    }

    func answerReads(_ node: Node) {
        let asked = reads
        reads = []
        for read in asked { read(.success(node)) }
    }

    func answerWrites(_ failure: WireFailure?) {
        while !writes.isEmpty { answerWrite(failure) }
    }

    /// Answers the oldest write.
    func answerWrite(_ failure: WireFailure?) {
        guard let id = writes.first?.id, let write = writes.remove(id) else { return }
        if failure == nil { notify(write) }
        write.done(failure)
    }

    /// Answers the listens at and above the location.
    private func notify(_ write: Write) {
        let changes = write.changes.map { $0.settled(nowMilliseconds: 1, old: server) }
        server = server.applying(changes)
        var above: TreePath? = write.path
        while let path = above {
            for listen in (open[path] ?? [:]).values {
                if write.isMerge {
                    let members = changes.map { (path: $0.path.relative(to: write.path), node: $0.node) }
                    delegate?.connectionDidReceive(merge: members, at: write.path, tag: listen.tag)
                } else {
                    delegate?.connectionDidReceive(data: changes[0].node, at: changes[0].path, tag: listen.tag)
                }
            }
            above = path.parent
        }
    }

    func listen(
        at path: TreePath, query: TreeQuery?, tag: Int?, hash: @escaping () -> ListenHash,
        done: @escaping (WireFailure?) -> Void
    ) {
        let listen = Listen(path: path, query: query, tag: tag, hash: hash, done: done)
        listens.append(listen)
        open[path, default: [:]][tag] = listen
    }

    func unlisten(at path: TreePath, query: TreeQuery?, tag: Int?) { open[path]?[tag] = nil }

    func put(at path: TreePath, _ node: Node, hash: String?, done: @escaping (WireFailure?) -> Void) {
        let location = path.last == .priority ? path.parent ?? path : path
        add(Write(path: location, changes: [TreeChange(path: path, node: node)], isMerge: false, done: done))
    }

    func merge(at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void) {
        let changes = members.map { TreeChange(path: path + $0.path, node: $0.node) }
        add(Write(path: path, changes: changes, isMerge: true, done: done))
    }

    private func add(_ write: Write) {
        lastWrite += 1
        writes.append(lastWrite, write)
    }

    func get(at path: TreePath, query: TreeQuery?, done: @escaping (Result<Node, WireFailure>) -> Void) -> Int {
        reads.append(done)
        return reads.count
    }

    func cancelGet(_ id: Int) {}
    func onDisconnectPut(at path: TreePath, _ node: Node, done: @escaping (WireFailure?) -> Void) { done(nil) }
    func onDisconnectMerge(
        at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void
    ) { done(nil) }
    func onDisconnectCancel(at path: TreePath, done: @escaping (WireFailure?) -> Void) { done(nil) }
    func goOnline(reason: String) {}
    func goOffline(reason: String) {}

    func purgeOutstandingWrites() {
        let purged = writes
        writes = AscendingList()
        purged.forEach { $1.done(.cancelled) }
    }

    func giveUp(_ failure: WireFailure) {}
}
