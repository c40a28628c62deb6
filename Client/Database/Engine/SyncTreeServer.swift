import HearthModel
import HearthTree

/// What comes from the server.
extension SyncTree {
    /// Data for listens of whole places.
    /// - Parameter changes: at absolute paths, all at once.
    /// - Returns: whether anybody sees anything else.
    @discardableResult
    func applyServer(_ changes: [TreeChange]) -> Bool {
        var known: [TreeChange] = []
        for change in changes { known += listenedParts(of: change) }
        if known.isEmpty { return false }
        noteTouches(known)
        server.apply(known)
        disk?.apply(known)
        let paths = known.map(\.path)
        var isResettled = false
        if writes.hasIncrements {
            let marks = paths.flatMap { listeningPoints(for: $0) }.filter { !$0.isAnswered }.map(\.mark)
            if let mark = marks.min() { isResettled = resettle(changesAt: paths) { $0.mark > mark } }
        }
        return refresh(changesAt: paths, cause: isResettled ? .max : .min)
    }

    /// The parts of a change that lie in places that are listened to as a whole: the others nobody keeps current.
    private func listenedParts(of change: TreeChange) -> [TreeChange] {
        listeningPoints(for: change.place).compactMap { point in
            if point.path.contains(change.place) { return change }
            if change.isPriority { return nil }
            return TreeChange(path: point.path, node: change.node.node(at: point.path.relative(to: change.path)))
        }
    }

    /// The one at or above a place that is listened to as a whole, or else all those below it.
    func listeningPoints(for path: TreePath) -> [SyncPoint] {
        let way = root.points(onTheWayTo: path)
        if let point = way.first(where: \.isListening) { return [point] }
        guard let point = way.last, point.path == path else { return [] }
        var points: [SyncPoint] = []
        point.forEach { if $0.isListening { points.append($0) } }
        return points
    }

    /// Data for the listen of one query. What is left of a listen that was taken back is ignored.
    @discardableResult
    func applyServer(_ changes: [TreeChange], tag: Int) -> Bool {
        guard let view = viewsByTag[tag] else { return false }
        let relative = changes.compactMap { change in
            view.path.contains(change.path)
                ? TreeChange(path: change.path.relative(to: view.path), node: change.node)
                : change.path.contains(view.path)
                    ? TreeChange(path: .root, node: change.node.node(at: view.path.relative(to: change.path))) : nil
        }
        if relative.isEmpty { return false }
        let isWhole = relative.contains { $0.path.isRoot || $0.path.first == .priority }
        let wasComplete = view.isWindowComplete
        setWindow(
            of: view, to: (view.window ?? .empty).applying(relative), isComplete: isWhole || view.isWindowComplete)
        disk?.apply(relative, to: view.query, at: view.path)
        let isResettled = !view.isAnswered && resettle(changesAt: [view.path]) { $0.mark > view.mark }
        let isAny = isWhole || isResettled || view.isWindowComplete != wasComplete
        return refresh(view, isAny ? .everything : .below(relative.map { $0.path.keys[...] }))
    }

    func setWindow(of view: View, to node: Node, isComplete: Bool) {
        // A leaf has no children to ask for.
        view.window = node.isLeaf ? .empty : node.with(priority: nil)
        view.isWindowComplete = isComplete
    }

    @discardableResult
    func applyServer(_ ranges: [ListenRange], at path: TreePath, tag: Int?) -> Bool {
        if let tag {
            guard let view = viewsByTag[tag] else { return false }
            let node = (view.window ?? .empty).applying(ranges)
            return applyServer([TreeChange(path: view.path, node: node)], tag: tag)
        }
        guard listeningPoints(for: path).contains(where: { $0.path.contains(path) }) else { return false }
        var present = server.node(at: path)
        if let point = root.point(at: path), point.isListening, !point.isAnswered { present = point.question.node }
        return applyServer([TreeChange(path: path, node: present.applying(ranges))])
    }

    private func noteTouches(_ changes: [TreeChange]) {
        for point in changes.flatMap({ listeningPoints(for: $0.place) }) where !point.isAnswered {
            point.question.isTouched = true
        }
    }

    /// The server's answer to a listen: all that it has was sent.
    func completeListen(at point: SyncPoint) {
        let question = point.question
        let isAnswered = point.isAnswered
        point.isAnswered = true
        point.question = SyncPoint.Question()
        if !isAnswered, question.isTouched, lastWholePlace != point.path {
            applyServer([TreeChange(path: point.path, node: question.node)])
        }
        let isNew = !server.isComplete(at: point.path)
        server.markComplete(at: point.path)
        disk?.markComplete(nil, at: point.path, server.node(at: point.path))
        lastWholePlace = nil
        if isNew { refresh(changesAt: [point.path]) }
    }

    func completeListen(of view: View) {
        lastWholePlace = nil
        disk?.markComplete(view.query, at: view.path, view.window ?? .empty)
        if view.isWindowComplete { return }
        setWindow(of: view, to: view.window ?? .empty, isComplete: true)
        refresh(view, .everything)
    }

    // MARK: Data that no listen brought

    /// What the server writes when the connection is lost, as far as it can be told.
    @discardableResult
    func applyDisconnect(_ changes: [TreeChange]) -> Bool {
        var isChanged = applyServer(changes)
        var concerned: [(view: View, changes: [TreeChange])] = []
        var positions: [ObjectIdentifier: Int] = [:]
        for change in changes {
            for view in windows(changedAt: change.place) {
                let position = positions[ObjectIdentifier(view), default: concerned.count]
                if position == concerned.count {
                    positions[ObjectIdentifier(view)] = position
                    concerned.append((view, []))
                }
                concerned[position].changes.append(change)
            }
        }
        for (view, changes) in concerned where adopt(changes, in: view) { isChanged = true }
        return isChanged
    }

    /// The views at, above and below a location that have the window of a query.
    private func windows(changedAt path: TreePath) -> [View] {
        let way = root.points(onTheWayTo: path)
        var views = way.flatMap(\.views)
        if let point = way.last, point.path == path {
            point.forEach { below in if below !== point { views += below.views } }
        }
        return views.filter(\.isWindowComplete)
    }

    /// Keeps the server's answer to a single read on the disk. Listens aren't told: what is news to them comes by itself, in an order
    /// in which the answer has no place. It may be older than what they have heard.
    func keepRead(_ node: Node, of query: TreeQuery, at path: TreePath) {
        guard let disk else { return }
        if query.isUnfiltered {
            keepWhole(node, at: path, on: disk)
        } else if root.point(at: path)?.view(query)?.tag == nil {
            disk.keepWindow(node, of: query, at: path)
        }
    }

    private func adopt(_ changes: [TreeChange], in view: View) -> Bool {
        guard view.isWindowComplete, var window = view.window else { return false }
        for change in changes {
            if !change.isPriority, change.path.contains(view.path) {
                window = change.node.node(at: view.path.relative(to: change.path))
            } else if view.path.contains(change.path) {
                let relative = TreeChange(path: change.path.relative(to: view.path), node: change.node)
                guard let key = relative.path.first, key != .priority else { continue }
                // Of a child that isn't in the window only all of it can be put there.
                guard relative.path.count == 1 || !window.child(key).isEmpty else { continue }
                window = window.applying(relative)
            }
        }
        window = view.query.result(of: window)
        if window == view.window { return false }
        setWindow(of: view, to: window, isComplete: true)
        disk?.apply([TreeChange(path: .root, node: window)], to: view.query, at: view.path)
        return refresh(view, .everything)
    }
}
