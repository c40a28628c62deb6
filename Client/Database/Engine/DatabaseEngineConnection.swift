import HearthModel
import HearthTree

/// The connection's notifications.
extension DatabaseEngine: DatabaseConnectionDelegate {
    func connectionDidConnect() {
        perform {
            sync.markSentAgain()
            info.setConnected(true)
        }
    }

    func connectionDidDisconnect() {
        perform {
            sync.isConnected = false
            info.setConnected(false)
            let writes = disconnectWrites.take().map { change in
                let known = sync.server.node(at: .root)
                return change.settled(nowMilliseconds: serverNowMilliseconds, old: known)
            }
            if writes.isEmpty { return }
            sync.applyDisconnect(writes)
            transactions.abort(at: writes.map(\.location), .overriddenBySet)
            transactions.rerun(at: .root)
        }
    }

    func connectionDidLearn(serverTimeOffsetMilliseconds offset: Int64) {
        perform { info.setServerTimeOffset(offset) }
    }

    func connectionDidReceive(data node: Node, at path: TreePath, tag: Int?) {
        receive([TreeChange(path: path, node: node)], at: path, tag: tag)
    }

    func connectionDidReceive(merge members: [(path: TreePath, node: Node)], at path: TreePath, tag: Int?) {
        receive(members.map { TreeChange(path: path + $0.path, node: $0.node) }, at: path, tag: tag)
    }

    private func receive(_ changes: [TreeChange], at path: TreePath, tag: Int?) {
        perform {
            let isChanged = tag.map { sync.applyServer(changes, tag: $0) } ?? sync.applyServer(changes)
            sync.lastWholeLocation = tag == nil && changes.count == 1 ? changes[0].path : nil
            disk?.countServerUpdate()
            if isChanged { transactions.rerun(at: path) }
        }
    }

    func connectionDidReceive(ranges: [ListenRange], at path: TreePath, tag: Int?) {
        perform {
            let isChanged = sync.applyServer(ranges, at: path, tag: tag)
            sync.lastWholeLocation = tag == nil ? path : nil
            disk?.countServerUpdate()
            if isChanged { transactions.rerun(at: path) }
        }
    }

    func connectionDidUnlisten(at path: TreePath, query: TreeQuery?) {
        // It was the data of the earlier listen.
        if query == nil, sync.lastWholeLocation == path { sync.lastWholeLocation = nil }
    }

    func connectionDidRevoke(listenAt path: TreePath, query: TreeQuery?, failure: WireFailure) {
        perform { sync.cancel(query, at: path, failure) }
    }
}
