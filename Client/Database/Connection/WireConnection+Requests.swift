import HearthTree

extension WireConnection: DatabaseConnection {
    func listen(
        at path: TreePath, query: TreeQuery?, tag: Int?, hash: @escaping () -> ListenHash,
        done: @escaping (WireFailure?) -> Void
    ) {
        outbox.listen(WireOutbox.ListenKey(path: path, query: query), tag: tag, hash: hash, done: done)
        planFlush()
    }

    func unlisten(at path: TreePath, query: TreeQuery?, tag: Int?) {
        outbox.unlisten(WireOutbox.ListenKey(path: path, query: query))
        planFlush()
        // Deferred answers may have waited for this one alone.
        driver.enqueue { [self] in releaseAnswers() }
    }

    func put(at path: TreePath, _ node: Node, hash: String?, done: @escaping (WireFailure?) -> Void) {
        outbox.write(.put(path, node, hash: hash), done: done)
        planFlush()
    }

    func merge(at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void) {
        outbox.write(.merge(path, members), done: done)
        planFlush()
    }

    func get(at path: TreePath, query: TreeQuery?, done: @escaping (Result<Node, WireFailure>) -> Void) -> Int {
        defer { planFlush() }
        return outbox.get(path, query, done: done)
    }

    func cancelGet(_ id: Int) { outbox.cancelGet(id) }

    func onDisconnectPut(at path: TreePath, _ node: Node, done: @escaping (WireFailure?) -> Void) {
        outbox.onDisconnect(.put(path, node, hash: nil), done: done)
        planFlush()
    }

    func onDisconnectMerge(
        at path: TreePath, _ members: [(path: TreePath, node: Node)], done: @escaping (WireFailure?) -> Void
    ) {
        outbox.onDisconnect(.merge(path, members), done: done)
        planFlush()
    }

    func onDisconnectCancel(at path: TreePath, done: @escaping (WireFailure?) -> Void) {
        outbox.onDisconnect(.cancel(path), done: done)
        planFlush()
    }

    func purgeOutstandingWrites() {
        for write in outbox.takeAllWrites() { write.done(.cancelled) }
    }

    func giveUp(_ failure: WireFailure) {
        for fail in outbox.takeAll() { fail(failure) }
    }

    // MARK: Out

    func send(_ item: WireOutbox.Item) {
        switch item {
        case .listen(let number):
            guard let listen = outbox.listens[number] else { return }
            let request = self.number(for: .listen(number))
            send(WireRequest.listen(request, listen.key.path, listen.key.query, tag: listen.tag, listen.hash()))
        case .unlisten(let key, let tag):
            send(WireRequest.unlisten(number(for: .unlisten(key)), key.path, key.query, tag: tag))
        case .write(let number):
            guard let write = outbox.writes[number] else { return }
            let request = self.number(for: .write(number))
            let string = string(of: write.change, request, put: "p", merge: "m")
            if string.count <= WireLimits.requestBytesMax { return send(string) }
            requests[request] = nil
            outbox.takeWrite(number)?.done(.tooLarge)
        case .onDisconnect(let number):
            guard let write = outbox.onDisconnects[number] else { return }
            let request = self.number(for: .onDisconnect(number))
            let string = string(of: write.change, request, put: "o", merge: "om")
            if string.count <= WireLimits.requestBytesMax { return send(string) }
            requests[request] = nil
            outbox.takeOnDisconnect(number)?.done(.tooLarge)
        case .get(let number):
            guard let get = outbox.gets[number] else { return }
            send(WireRequest.get(self.number(for: .get(number)), get.path, get.query))
        }
    }

    private func string(of change: WireOutbox.Change, _ request: Int, put: String, merge: String) -> [UInt8] {
        switch change {
        case .put(let path, let node, let hash): WireRequest.put(request, put, path, node, hash: hash)
        case .merge(let path, let members): WireRequest.merge(request, merge, path, members)
        case .cancel(let path): WireRequest.onDisconnectCancel(request, path)
        }
    }

    // MARK: In

    func answer(_ reply: WireReply) throws(TreeDataError) {
        switch requests.removeValue(forKey: reply.number) {
        case .auth: didAuthenticate(reply.failure)
        case .listen(let number): try listenDidAnswer(number, reply)
        case .write(let number):
            guard let write = outbox.takeWrite(number) else { return }
            let failure = reply.failure
            if !outbox.hold({ write.done(failure) }) { write.done(failure) }
        case .onDisconnect(let number): outbox.takeOnDisconnect(number)?.done(reply.failure)
        case .get(let number):
            guard let get = outbox.takeGet(number) else { return }
            if let failure = reply.failure { return get.done(.failure(failure)) }
            get.done(.success(try reply.node()))
        case .unlisten(let key): delegate?.connectionDidUnlisten(at: key.path, query: key.query)
        case nil: break
        }
    }

    private func listenDidAnswer(_ number: Int, _ reply: WireReply) throws(TreeDataError) {
        // The request was cancelled in the meantime.
        guard let listen = outbox.listens[number] else { return }
        let failure = reply.failure
        if failure == nil {
            outbox.listenDidAnswer(number)
            try warn(of: listen.key, reply)
        } else {
            outbox.removeListen(number)
        }
        listen.done(failure)
        releaseAnswers()
    }

    private func warn(of key: WireOutbox.ListenKey, _ reply: WireReply) throws(TreeDataError) {
        guard let warnings = try reply.value()["w"]?.array, warnings.contains(.string("no_index")) else { return }
        let name =
            switch key.query?.index {
            case .child(let path)?: path.string
            case .value?: ".value"
            default: ""
            }
        driver.warn(
            "The query at \(key.path) has no index: the server sends all data of the location and the client filters it. Add "
                + "\".indexOn\": \"\(name)\" at \(key.path) to the rules.")
    }

    func releaseAnswers() {
        for answer in outbox.takeHeldAnswers() { answer() }
    }

    /// The server revoked listens. Without a query this means all queries at the location if it has no listen
    /// without one.
    func revoke(_ path: TreePath, _ query: TreeQuery?) {
        for listen in outbox.listens(at: path, query) {
            outbox.removeListen(listen.number)
            delegate?.connectionDidRevoke(
                listenAt: path, query: listen.key.query,
                failure: WireFailure(WireFailure.permissionDenied, "Permission denied"))
        }
        releaseAnswers()
    }
}
