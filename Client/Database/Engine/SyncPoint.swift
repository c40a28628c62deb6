import HearthTree

/// A location with views, or one above such a location.
final class SyncPoint {
    let path: TreePath
    /// One view per query.
    private var viewsByQuery: [TreeQuery: View] = [:]
    private var viewsInOrder = AscendingList<View>()
    private var lastViewNumber: Int64 = 0
    /// Views that need all data of the location.
    private var wholeCount = 0
    private(set) var children: [TreeKey: SyncPoint] = [:]
    /// Whether there is a listen for all data of the location.
    var isListening = false
    /// Distinguishes answers to an earlier listen from those to the present one.
    var listenNumber: Int64 = 0
    /// Whether the listen is answered on the present connection.
    var isAnswered = false
    /// When it was sent, in the common order of listens and writes.
    var mark: Int64 = 0
    /// Until the answer: the data whose hash was sent, and the changes since. An answer without data means that the
    /// server has this data, independent of the data of earlier listens of the location or below it in the meantime.
    var question = Question()

    struct Question {
        var node = Node.empty
        var isTouched = false
    }

    init(_ path: TreePath) { self.path = path }

    /// Whether a view needs all data of the location.
    var isWantedWhole: Bool { wholeCount > 0 }
    private var isUseless: Bool { viewsByQuery.isEmpty && children.isEmpty && !isListening }

    /// In the order of creation.
    var views: [View] {
        var views: [View] = []
        viewsInOrder.forEach { views.append($1) }
        return views
    }

    func view(_ query: TreeQuery) -> View? { viewsByQuery[query] }

    func makeView(_ query: TreeQuery) -> View {
        lastViewNumber += 1
        let view = View(query, at: path, number: lastViewNumber)
        viewsByQuery[query] = view
        viewsInOrder.append(view.number, view)
        if query.isUnfiltered { wholeCount += 1 }
        return view
    }

    func remove(_ view: View) {
        guard viewsInOrder.remove(view.number) != nil else { return }
        viewsByQuery[view.query] = nil
        if view.query.isUnfiltered { wholeCount -= 1 }
    }

    // MARK: The tree

    func point(at path: TreePath) -> SyncPoint? {
        var point = self
        for key in path.keys {
            guard let child = point.children[key] else { return nil }
            point = child
        }
        return point
    }

    func makePoint(at path: TreePath) -> SyncPoint {
        var point = self
        for key in path.keys {
            if let child = point.children[key] {
                point = child
            } else {
                let child = SyncPoint(point.path.child(key))
                point.children[key] = child
                point = child
            }
        }
        return point
    }

    /// The points from here down to a path, as far as they exist; both ends included.
    func points(atOrAbove path: TreePath) -> [SyncPoint] {
        var points = [self]
        for key in path.keys {
            guard let child = points[points.count - 1].children[key] else { break }
            points.append(child)
        }
        return points
    }

    var childrenInOrder: [SyncPoint] {
        if children.count < 2 { return Array(children.values) }
        return children.sorted { $0.key < $1.key }.map(\.value)
    }

    /// This point and those below, parents first, in the order of keys.
    func forEach(_ body: (SyncPoint) -> Void) {
        body(self)
        for child in childrenInOrder { child.forEach(body) }
    }

    /// Removes the points above a location that are not used any more.
    func prune(atOrAbove path: TreePath) {
        let points = points(atOrAbove: path)
        for index in points.indices.dropFirst().reversed() {
            guard points[index].isUseless else { return }
            points[index - 1].children[path.keys[index - 1]] = nil
        }
    }

    // MARK: Changes

    /// The part of a location that may have changed.
    enum Touch {
        case everything
        /// Only the data at these paths below it; neither its own value nor its priority.
        case below([ArraySlice<TreeKey>])
    }

    /// Visits the points that changes at some paths affect: those above, at and below them, lower ones first.
    /// - Parameter locations: relative to this point; the last key may be `.priority`.
    func visit(changesAt locations: [ArraySlice<TreeKey>], _ body: (SyncPoint, Touch) -> Void) {
        if locations.contains(where: \.isEmpty) {
            for child in childrenInOrder { child.visit(changesAt: [[]], body) }
            return body(self, .everything)
        }
        let below = Self.split(locations)
        for (key, locations) in below where key != .priority {
            children[key]?.visit(changesAt: locations, body)
        }
        body(self, below.contains { $0.key == .priority } ? .everything : .below(locations))
    }

    /// Groups paths by the child that contains them, in the order of keys.
    static func split(_ locations: [ArraySlice<TreeKey>]) -> [(key: TreeKey, locations: [ArraySlice<TreeKey>])] {
        if locations.count == 1, let key = locations[0].first { return [(key, [locations[0].dropFirst()])] }
        var below: [TreeKey: [ArraySlice<TreeKey>]] = [:]
        for location in locations {
            if let key = location.first { below[key, default: []].append(location.dropFirst()) }
        }
        return below.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
