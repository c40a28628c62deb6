import HearthTree

/// The connection's notifications to the engine, on the engine's queue.
protocol DatabaseConnectionDelegate: AnyObject {
    /// Handshake and credentials are complete. Called before the answer to any listen.
    func connectionDidConnect()
    /// Only after `connectionDidConnect`.
    func connectionDidDisconnect()
    /// Called with each handshake: the server's clock minus the local one.
    func connectionDidLearn(serverTimeOffsetMilliseconds: Int64)

    /// - Parameter path: absolute.
    func connectionDidReceive(data node: Node, at path: TreePath, tag: Int?)
    /// - Parameter members: locations below `path`.
    func connectionDidReceive(merge members: [(path: TreePath, node: Node)], at path: TreePath, tag: Int?)
    func connectionDidReceive(ranges: [ListenRange], at path: TreePath, tag: Int?)

    /// The server has ended a listen that was removed: data that it sends from now on belongs to a later listen.
    func connectionDidUnlisten(at path: TreePath, query: TreeQuery?)
    /// The server revoked a listen, and the connection has removed it.
    func connectionDidRevoke(listenAt path: TreePath, query: TreeQuery?, failure: WireFailure)
}
