import HearthModel
import HearthTree

/// Changes from the server.
extension SyncTree {
    /// Data for listens of whole locations.
    /// - Parameter changes: at absolute paths, applied together.
    /// - Returns: whether any view changed.
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

    /// The parts of a change in locations with a listen for all data. Other parts would not be kept current.
    private func listenedParts(of change: TreeChange) -> [TreeChange] {
        listeningPoints(for: change.location).compactMap { point in
            if point.path.contains(change.location) { return change }
            if change.isPriority { return nil }
            return TreeChange(path: point.path, node: change.node.node(at: point.path.relative(to: change.path)))
        }
    }

    /// The point at or above a location with a listen for all data, or else all such points below it.
    func listeningPoints(for path: TreePath) -> [SyncPoint] {
        let ancestors = root.points(atOrAbove: path)
        if let point = ancestors.first(where: \.isListening) { return [point] }
        guard let point = ancestors.last, point.path == path else { return [] }
        var points: [SyncPoint] = []
        point.forEach { if $0.isListening { points.append($0) } }
        return points
    }

    /// Data for the listen of one query. Remaining data of a removed listen is ignored.
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
        // A leaf has no children to check.
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
        for point in changes.flatMap({ listeningPoints(for: $0.location) }) where !point.isAnswered {
            point.question.isTouched = true
        }
    }

    /// The server's answer to a listen: all its data was sent.
    func completeListen(at point: SyncPoint) {
        let question = point.question
        let isAnswered = point.isAnswered
        point.isAnswered = true
        point.question = SyncPoint.Question()
        if !isAnswered, question.isTouched, lastWholeLocation != point.path {
            applyServer([TreeChange(path: point.path, node: question.node)])
        }
        let isNew = !server.isComplete(at: point.path)
        server.markComplete(at: point.path)
        disk?.markComplete(nil, at: point.path, server.node(at: point.path))
        lastWholeLocation = nil
        if isNew { refresh(changesAt: [point.path]) }
    }

    func completeListen(of view: View) {
        lastWholeLocation = nil
        disk?.markComplete(view.query, at: view.path, view.window ?? .empty)
        if view.isWindowComplete { return }
        setWindow(of: view, to: view.window ?? .empty, isComplete: true)
        refresh(view, .everything)
    }

    // MARK: Data that no listen brought

    /// Applies the writes that the server makes when the connection is lost, as far as they are known.
    @discardableResult
    func applyDisconnect(_ changes: [TreeChange]) -> Bool {
        var isChanged = applyServer(changes)
        var concerned: [(view: View, changes: [TreeChange])] = []
        var positions: [ObjectIdentifier: Int] = [:]
        for change in changes {
            for view in windows(changedAt: change.location) {
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
        let points = root.points(atOrAbove: path)
        var views = points.flatMap(\.views)
        if let point = points.last, point.path == path {
            point.forEach { below in if below !== point { views += below.views } }
        }
        return views.filter(\.isWindowComplete)
    }

    /// Stores the server's answer to a single read on disk. Listens do not receive it: the server sends them the
    /// data separately, in an order that the answer is not a part of. The answer may be older than their data.
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
                // For a child that is not in the window only its whole data can be stored.
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
