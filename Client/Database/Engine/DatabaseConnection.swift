import HearthTree

/// The engine's connection to the server. The connection implements it; a test provides a fake.
///
/// **State of the connection.** The wanted listens and the writes without an answer. After each reconnect the
/// connection sends the listens (and asks each for its hash again), then the unanswered writes in order. A put with a
/// hash that was sent before the connection was lost is not sent again: it fails with `disconnect`. Unsent writes stay.
///
/// **Order.** All callbacks run on the engine's queue. Data is delivered in the order of the server's messages, and
/// before the answers that follow it. No callback runs before the call that received it has returned.
protocol DatabaseConnection: AnyObject {
    /// Listens at a location. Without a query (or with one that only orders) `query` and `tag` are nil.
    /// - Parameters:
    ///   - tag: for a query that leaves children out; unique among the listens of this connection.
    ///   - hash: the hash of the engine's data; called each time the listen is sent.
    ///   - done: called after each `ok`, so once per connection; or once with the error, which removes the listen.
    func listen(
        at path: TreePath, query: TreeQuery?, tag: Int?, hash: @escaping () -> ListenHash,
        done: @escaping (WireFailure?) -> Void)
    /// Removes a listen. Its `done` is not called afterwards.
    func unlisten(at path: TreePath, query: TreeQuery?, tag: Int?)

    /// Replaces the data at a location; the path may end in `.priority`. Values may be server values.
    /// - Parameters:
    ///   - hash: the required hash of the present data; otherwise the answer is `datastale`.
    ///   - done: nil for `ok`; called exactly once.
    func put(at path: TreePath, _ node: Node, hash: String?, done: @escaping (WireFailure?) -> Void)
    /// - Parameter members: not empty; locations below `path`, which may end in `.priority`.
    func merge(
        at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void)

    /// Reads once. The request is not sent again when the connection is lost: it fails with `disconnect` then.
    /// - Returns: an identifier for `cancelGet`.
    func get(at path: TreePath, query: TreeQuery?, done: @escaping (Result<Node, WireFailure>) -> Void) -> Int
    /// Cancels a read that is not sent yet; has no effect otherwise. `done` is not called afterwards.
    func cancelGet(_ id: Int)

    func onDisconnectPut(at path: TreePath, _ node: Node, done: @escaping (WireFailure?) -> Void)
    func onDisconnectMerge(
        at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void)
    func onDisconnectCancel(at path: TreePath, done: @escaping (WireFailure?) -> Void)

    /// Removes an interrupt reason.
    func goOnline(reason: String)
    /// Adds an interrupt reason, which keeps the connection offline.
    func goOffline(reason: String)
    /// Cancels all writes without an answer: puts, merges and onDisconnect operations. Their `done` is called with
    /// `write_canceled` before this returns, in order.
    func purgeOutstandingWrites()
    /// Cancels all requests without an answer, and all listens. Each pending `done` is called with the failure
    /// before this returns, in order.
    func giveUp(_ failure: WireFailure)
}
