import HearthTree

/// A place that somebody looks at, or that lies above such a one.
final class SyncPoint {
    let path: TreePath
    /// One a query.
    private var viewsByQuery: [TreeQuery: View] = [:]
    private var viewsInOrder = AscendingList<View>()
    private var lastViewNumber: Int64 = 0
    /// Views that want all of the location.
    private var wholeCount = 0
    private(set) var children: [TreeKey: SyncPoint] = [:]
    /// Whether the place is listened to as a whole.
    var isListening = false
    /// Tells answers to an earlier listen from those to the present one.
    var listenNumber: Int64 = 0
    /// Whether the listen's answer has come by the present connection.
    var isAnswered = false
    /// When it was sent, among listens and writes.
    var mark: Int64 = 0
    /// Until the answer: the data whose hash was sent, and what came since. Without data of its own an answer says that the
    /// server has this data, whatever an earlier listen of the place, or of one below it, has told in the meantime.
    var question = Question()

    struct Question {
        var node = Node.empty
        var isTouched = false
    }

    init(_ path: TreePath) { self.path = path }

    /// Whether somebody wants all of the place.
    var isWantedWhole: Bool { wholeCount > 0 }
    private var isUseless: Bool { viewsByQuery.isEmpty && children.isEmpty && !isListening }

    /// In the order of their coming.
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

    /// From here down to a place, as far as there are points; both ends included.
    func points(onTheWayTo path: TreePath) -> [SyncPoint] {
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

    /// This one and those below, parents first, in the order of keys.
    func forEach(_ body: (SyncPoint) -> Void) {
        body(self)
        for child in childrenInOrder { child.forEach(body) }
    }

    /// Removes the points on the way to a place that nobody needs any more.
    func prune(onTheWayTo path: TreePath) {
        let points = points(onTheWayTo: path)
        for index in points.indices.dropFirst().reversed() {
            guard points[index].isUseless else { return }
            points[index - 1].children[path.keys[index - 1]] = nil
        }
    }

    // MARK: Changes

    /// What of a location may have changed.
    enum Touch {
        case everything
        /// Only what is at these locations below it, and neither its own value nor its priority.
        case below([ArraySlice<TreeKey>])
    }

    /// Visits the points that changes at some locations concern: those above, at and below them, lower ones first.
    /// - Parameter places: relative to this point; the last key may be `.priority`.
    func visit(changesAt places: [ArraySlice<TreeKey>], _ body: (SyncPoint, Touch) -> Void) {
        if places.contains(where: \.isEmpty) {
            for child in childrenInOrder { child.visit(changesAt: [[]], body) }
            return body(self, .everything)
        }
        let below = Self.split(places)
        for (key, places) in below where key != .priority {
            children[key]?.visit(changesAt: places, body)
        }
        body(self, below.contains { $0.key == .priority } ? .everything : .below(places))
    }

    /// Locations by the child that they are in, in the order of keys.
    static func split(_ places: [ArraySlice<TreeKey>]) -> [(key: TreeKey, places: [ArraySlice<TreeKey>])] {
        if places.count == 1, let key = places[0].first { return [(key, [places[0].dropFirst()])] }
        var below: [TreeKey: [ArraySlice<TreeKey>]] = [:]
        for place in places {
            if let key = place.first { below[key, default: []].append(place.dropFirst()) }
        }
        return below.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
