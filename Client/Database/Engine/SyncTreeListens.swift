import HearthTree

/// The listens of the connection. A listen for all data of a location covers all locations below it. Filtered
/// queries that no such location covers have listens of their own, each with a tag.
extension SyncTree {
    private enum Listen {
        case whole(SyncPoint)
        case window(View)
    }

    /// Updates the listens at a location, and below it, directly after its views changed. New listens are requested
    /// before old ones are removed, so that the server's data has no gap.
    /// - Parameters:
    ///   - view: a view that is used now; nil for none.
    ///   - removed: a view that was removed.
    ///   - isLost: whether the connection has lost the location's listen for all data.
    func provision(at path: TreePath, for view: View? = nil, without removed: View? = nil, isLost: Bool = false) {
        guard connection != nil, let point = root.point(at: path) else { return }
        let isCovered = root.points(atOrAbove: path).contains { $0.path.count < path.count && $0.isWantedWhole }
        let isFlipped = !isCovered && point.isListening != point.isWantedWhole
        let isForgotten = isLost || isFlipped && !point.isWantedWhole
        var starts: [Listen] = []
        var stops: [Listen] = []
        if let removed, removed.tag != nil { stops.append(.window(removed)) }
        if isFlipped || isLost {
            collect(point, isCovered: isCovered, &starts, &stops)
        } else if let view {
            collect(view, isAlone: !isCovered && !point.isWantedWhole, &starts, &stops)
        }
        for listen in starts { start(listen) }
        for listen in stops { stop(listen) }
        if isForgotten { forget(below: point) }
    }

    private func collect(_ point: SyncPoint, isCovered: Bool, _ starts: inout [Listen], _ stops: inout [Listen]) {
        let isWhole = !isCovered && point.isWantedWhole
        if isWhole, !point.isListening { starts.append(.whole(point)) }
        if !isWhole, point.isListening { stops.append(.whole(point)) }
        for view in point.views { collect(view, isAlone: !isCovered && !isWhole, &starts, &stops) }
        for child in point.childrenInOrder { collect(child, isCovered: isCovered || isWhole, &starts, &stops) }
    }

    private func collect(_ view: View, isAlone: Bool, _ starts: inout [Listen], _ stops: inout [Listen]) {
        if view.query.isUnfiltered { return }
        if isAlone, view.tag == nil { starts.append(.window(view)) }
        if !isAlone, view.tag != nil { stops.append(.window(view)) }
    }

    /// Drops the data of a location without a listen.
    private func forget(below point: SyncPoint) {
        var kept: [TreePath] = []
        point.forEach { if $0.isListening { kept.append($0.path) } }
        server.forget(at: point.path, keeping: kept)
    }

    private func start(_ listen: Listen) {
        switch listen {
        case .whole(let point): startWhole(point)
        case .window(let view): startWindow(view)
        }
    }

    private func startWhole(_ point: SyncPoint) {
        point.isListening = true
        point.isAnswered = false
        sendings += 1
        point.mark = sendings
        let number = point.mark
        point.listenNumber = number
        connection?.listen(at: point.path, query: nil, tag: nil) { [unowned self] in
            point.question = SyncPoint.Question(node: server.node(at: point.path))
            return ListenHash(of: point.question.node)
        } done: { [weak self] failure in
            guard let self, point.isListening, point.listenNumber == number else { return }
            perform {
                if let failure {
                    self.cancel(nil, at: point.path, failure)
                } else {
                    self.completeListen(at: point)
                }
            }
        }
    }

    private func startWindow(_ view: View) {
        // It is never older than the window.
        if let node = server.completeNode(at: view.path) {
            setWindow(of: view, to: view.query.result(of: node), isComplete: true)
            disk?.apply(
                [TreeChange(path: .root, node: view.window ?? .empty)], to: view.query, at: view.path)
        }
        lastTag += 1
        let tag = lastTag
        view.tag = tag
        viewsByTag[tag] = view
        view.isAnswered = false
        sendings += 1
        view.mark = sendings
        connection?.listen(at: view.path, query: view.query, tag: tag) { [unowned view] in
            ListenHash(of: view.window ?? .empty)
        } done: { [weak self] failure in
            guard let self, view.tag == tag else { return }
            view.isAnswered = true
            perform {
                if let failure {
                    self.cancel(view.query, at: view.path, failure)
                } else {
                    self.completeListen(of: view)
                }
            }
        }
    }

    private func stop(_ listen: Listen) {
        switch listen {
        case .whole(let point):
            point.isListening = false
            connection?.unlisten(at: point.path, query: nil, tag: nil)
        case .window(let view):
            guard let tag = view.tag else { return }
            view.tag = nil
            viewsByTag[tag] = nil
            connection?.unlisten(at: view.path, query: view.query, tag: tag)
        }
    }

    // MARK: The initial data of a view

    /// Collects the data of a new view that other views' windows and the disk have.
    /// - Returns: the locations whose known server data grew.
    func seed(_ view: View) -> [TreePath] {
        let stored = disk?.startUsing(view.query, at: view.path)
        if connection == nil || server.isComplete(at: view.path) { return [] }
        // A listen that covers the location was sent with the hash of the known data: its answer must find that
        // data.
        let covering = listeningPoints(for: view.path).first { $0.path.contains(view.path) }
        if let covering, isConnected, !covering.isAnswered { return [] }
        guard view.query.isUnfiltered else {
            if let node = stored?.node { setWindow(of: view, to: view.query.result(of: node), isComplete: true) }
            return []
        }
        if let node = windowedNode(at: view.path) {
            server.apply(node, at: view.path)
            disk?.apply([TreeChange(path: view.path, node: node)])
            return [view.path]
        }
        if let node = stored?.node {
            server.apply(node, at: view.path)
            return [view.path]
        }
        let parts = (stored?.parts ?? []).filter { !server.isComplete(at: $0.path) }
        for part in parts { server.apply(part.node, at: part.path) }
        return parts.map(\.path)
    }
}
