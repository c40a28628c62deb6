import HearthTree

/// The engine's way to the server. The connection implements it; a test puts a fake in its place.
///
/// **What the connection keeps.** The listens that are wanted and the writes that have no answer yet. After each reconnect it
/// sends the listens (asking each for its hash again), then the unanswered writes in order. A put with a hash that was sent
/// before the connection was lost is not sent again: it is answered with `disconnect`. What was never sent stays.
///
/// **Order.** Everything comes back on the engine's queue, data in the order of the server's messages and before the answers
/// that followed it. No callback runs before the call that it was given to has returned.
protocol DatabaseConnection: AnyObject {
    /// Listens at a place. Without a query (or with one that only orders) `query` and `tag` are nil.
    /// - Parameters:
    ///   - tag: for a query that leaves children out; unique among the listens of this connection.
    ///   - hash: of what the engine has; asked whenever the listen is sent.
    ///   - done: after each `ok`, so once a connection; or once with the refusal, after which the listen is gone.
    func listen(
        at path: TreePath, query: TreeQuery?, tag: Int?, hash: @escaping () -> ListenHash,
        done: @escaping (WireFailure?) -> Void)
    /// Takes a listen back. Its `done` isn't called any more.
    func unlisten(at path: TreePath, query: TreeQuery?, tag: Int?)

    /// Replaces what is at a place; the path may end in `.priority`. Values may be the server's to work out.
    /// - Parameters:
    ///   - hash: what the present data has to have; else the answer is `datastale`.
    ///   - done: nil for `ok`; exactly once.
    func put(at path: TreePath, _ node: Node, hash: String?, done: @escaping (WireFailure?) -> Void)
    /// - Parameter members: not empty; places below `path`, which may end in `.priority`.
    func merge(
        at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void)

    /// Asks once. Not sent again when the connection is lost: fails with `disconnect` then.
    /// - Returns: a name for `cancelGet`.
    func get(at path: TreePath, query: TreeQuery?, done: @escaping (Result<Node, WireFailure>) -> Void) -> Int
    /// Takes a question back that was not sent yet; without effect otherwise. `done` isn't called any more.
    func cancelGet(_ id: Int)

    func onDisconnectPut(at path: TreePath, _ node: Node, done: @escaping (WireFailure?) -> Void)
    func onDisconnectMerge(
        at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void)
    func onDisconnectCancel(at path: TreePath, done: @escaping (WireFailure?) -> Void)

    /// Takes a reason out of the set of those for staying offline.
    func goOnline(reason: String)
    /// Puts a reason into that set.
    func goOffline(reason: String)
    /// Gives up all writes without an answer: puts, merges and what was to happen on disconnect. Their `done` is called with
    /// `write_canceled` before this returns, in order.
    func purgeOutstandingWrites()
    /// Gives up everything that waits for an answer, and all listens. What waits is told the failure before this returns, in
    /// order.
    func giveUp(_ failure: WireFailure)
}

/// What the connection tells the engine, on the engine's queue.
protocol DatabaseConnectionDelegate: AnyObject {
    /// Handshake and credentials are through; before the answer to any listen.
    func connectionDidConnect()
    /// Only after `connectionDidConnect`.
    func connectionDidDisconnect()
    /// With each handshake: the server's clock minus ours.
    func connectionDidLearn(serverTimeOffsetMilliseconds: Int64)

    /// - Parameter path: absolute.
    func connectionDidReceive(data node: Node, at path: TreePath, tag: Int?)
    /// - Parameter members: places below `path`.
    func connectionDidReceive(merge members: [(path: TreePath, node: Node)], at path: TreePath, tag: Int?)
    func connectionDidReceive(ranges: [ListenRange], at path: TreePath, tag: Int?)

    /// The server has ended a listen that was taken back: what it sends from now on belongs to a later one.
    func connectionDidUnlisten(at path: TreePath, query: TreeQuery?)
    /// The server took a listen away, and the connection has forgotten it.
    func connectionDidRevoke(listenAt path: TreePath, query: TreeQuery?, failure: WireFailure)
}
