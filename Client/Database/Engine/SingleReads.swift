import HearthTree

/// Reading once: from the best data, not from the first data that is available.
extension DatabaseEngine {
    /// The time that a read waits for a connection before it uses the disk.
    static let readPatienceMilliseconds = 3000

    /// The complete data of observers of the location; or else the server's answer; or else, when it fails or the
    /// server cannot be reached, the data of the disk and pending writes. Source: "Read data once" in the Firebase
    /// Realtime Database documentation.
    func get(
        _ query: TreeQuery, at path: TreePath, completion: @escaping (Result<Node, WireFailure>) -> Void
    ) {
        perform {
            let tree = path.first == InfoTree.name ? info.sync : sync
            if let node = tree.observedNode(query, at: path) {
                outputs.append { completion(.success(node)) }
            } else {
                ask(query, at: path, completion)
            }
        }
    }

    private func ask(
        _ query: TreeQuery, at path: TreePath, _ completion: @escaping (Result<Node, WireFailure>) -> Void
    ) {
        var stopWaiting: (() -> Void)?
        let id = connection.get(at: path, query: query.isUnfiltered ? nil : query) { [weak self] result in
            stopWaiting?()
            stopWaiting = nil
            guard let self else { return }
            self.perform { self.finish(query, at: path, result, completion) }
        }
        if info.isConnected { return }
        stopWaiting = environment.schedule(Self.readPatienceMilliseconds) { [weak self] in
            guard let self, stopWaiting != nil else { return }
            stopWaiting = nil
            // Asked in the meantime: the answer or the loss of the connection follows.
            if self.info.isConnected { return }
            self.connection.cancelGet(id)
            self.perform { self.finish(query, at: path, .failure(.offline), completion) }
        }
    }

    private func finish(
        _ query: TreeQuery, at path: TreePath, _ result: Result<Node, WireFailure>,
        _ completion: @escaping (Result<Node, WireFailure>) -> Void
    ) {
        switch result {
        case .success(let node):
            let window = query.result(of: node)
            sync.keepRead(window, of: query, at: path)
            disk?.countServerUpdate()
            outputs.append { completion(.success(window)) }
        case .failure(let failure):
            let stored = disk?.stored(query, at: path)
            let known = sync.seen(query, at: path, over: stored)
            outputs.append {
                completion(known.map { $0.isEmpty ? .failure(failure) : .success($0) } ?? .failure(failure))
            }
        }
    }
}

extension SyncTree {
    /// The complete data that observers see for a query: observers of the query itself, or of a whole location at
    /// or above.
    fileprivate func observedNode(_ query: TreeQuery, at path: TreePath) -> Node? {
        let points = root.points(atOrAbove: path)
        if let point = points.last, point.path == path, let view = point.view(query), view.isComplete {
            return view.shown
        }
        guard connection == nil || points.contains(where: \.isWantedWhole), let base = server.completeNode(at: path)
        else { return nil }
        return writes.applied(at: path, to: base).map { query.result(of: $0) }
    }

    /// - Parameter base: the query's data without pending writes; nil when it is not known.
    fileprivate func seen(_ query: TreeQuery, at path: TreePath, over base: Node?) -> Node? {
        writes.applied(at: path, to: base).map { query.result(of: $0) }
    }
}
