import HearthModel
import HearthTree

/// A write of the program that the server hasn't answered.
struct PendingWrite {
    /// Grows from write to write.
    let id: Int64
    /// Where it was sent to.
    let path: TreePath
    /// Whether it names places below `path`.
    let isMerge: Bool
    /// At absolute paths, none of which is above another. Values may be deferred.
    let changes: [TreeChange]
    /// Not visible are transactions without local events.
    var isVisible = true
    /// What deferred timestamps show until the server's value comes.
    let madeAtMilliseconds: Int64

    /// `changes` with provisional values in the place of deferred ones.
    var settled: [TreeChange] = []
    /// When it was sent, among listens and writes.
    var mark: Int64 = 0
}

/// The writes that have no answer yet, and what becomes of data under them.
///
/// Deferred values are worked out when a write is added, and again when data comes that the server had before the write: see
/// `SyncTree.resettle`.
struct WriteTree {
    /// Which writes count.
    struct Selection {
        var includesHidden = false
        var excluded: Set<Int64> = []
        /// Only those before this one.
        var end = Int64.max

        static let visible = Selection()
    }

    /// One change of a write. Sorts in the order of the writes.
    private struct Place {
        let id: Int64
        let index: Int

        static func isBefore(_ lhs: Place, _ rhs: Place) -> Bool { (lhs.id, lhs.index) < (rhs.id, rhs.index) }
    }

    private(set) var writes: [Int64: PendingWrite] = [:]
    /// Those that add to what is there, in order.
    private(set) var incrementing: [Int64] = []
    private var places = PathTrie<[Place]>()

    var isEmpty: Bool { writes.isEmpty }

    mutating func add(_ write: PendingWrite) {
        writes[write.id] = write
        if write.changes.contains(where: \.node.hasIncrement) { incrementing.append(write.id) }
        for (index, change) in write.changes.enumerated() {
            let place = Place(id: write.id, index: index)
            places.update(at: change.path) { trie in trie.value = (trie.value ?? []) + [place] }
        }
    }

    mutating func settle(_ id: Int64, to changes: [TreeChange]) { writes[id]?.settled = changes }

    mutating func markAll(_ mark: Int64) {
        for id in writes.keys { writes[id]?.mark = mark }
    }

    /// - Returns: nil when there is no such write.
    mutating func remove(_ id: Int64) -> PendingWrite? {
        guard let write = writes.removeValue(forKey: id) else { return nil }
        incrementing.removeAll { $0 == id }
        for change in write.changes {
            places.update(at: change.path) { trie in
                trie.value?.removeAll { $0.id == id }
                if trie.value?.isEmpty == true { trie.value = nil }
            }
        }
        return write
    }

    /// Whether a visible write replaces a place, as itself or with what is above it, or sets its priority.
    func touches(_ path: TreePath) -> Bool {
        if writes.isEmpty { return false }
        var isTouched = false
        let trie = descend(to: path) { if $0.contains(where: { isSelected($0, .visible) }) { isTouched = true } }
        return isTouched || trie?.children[.priority] != nil
    }

    /// Children of a place at or below which something is written.
    func keys(below path: TreePath) -> [TreeKey] {
        if writes.isEmpty { return [] }
        return places.subtrie(at: path)?.children.keys.filter { $0 != .priority } ?? []
    }

    /// What a place looks like with the writes on top.
    /// - Parameter base: what is below the writes; nil when that isn't known.
    /// - Returns: nil when not all of the result is known.
    func applied(at path: TreePath, to base: Node?, _ selection: Selection = .visible) -> Node? {
        if writes.isEmpty { return base }
        var relevant: [Place] = []
        descend(to: path) { relevant += $0 }?.forEachBelow { relevant += $0 }
        relevant.removeAll { !isSelected($0, selection) }
        if relevant.isEmpty { return base }
        relevant.sort(by: Place.isBefore)
        // What is below a replacement doesn't matter.
        let start = relevant.lastIndex { change($0).path.count <= path.count } ?? 0
        var node = base
        var next = start
        while next < relevant.count {
            let id = relevant[next].id
            let end = relevant[next...].firstIndex { $0.id != id } ?? relevant.count
            node = apply(relevant[next..<end], at: path, to: node)
            next = end
        }
        return node
    }

    /// Visits the places from the root down to `path`, that one included.
    /// - Returns: what is at and below it.
    @discardableResult
    private func descend(to path: TreePath, _ body: ([Place]) -> Void) -> PathTrie<[Place]>? {
        var trie = places
        for depth in 0...path.count {
            if let value = trie.value { body(value) }
            guard depth < path.count else { return trie }
            guard let child = trie.children[path.keys[depth]] else { return nil }
            trie = child
        }
        return trie
    }

    private func isSelected(_ place: Place, _ selection: Selection) -> Bool {
        guard let write = writes[place.id] else { return false }
        return (write.isVisible || selection.includesHidden) && place.id < selection.end
            && !selection.excluded.contains(place.id)
    }

    private func change(_ place: Place) -> TreeChange {
        guard let write = writes[place.id] else { preconditionFailure("a place of a write that is gone") }
        return write.settled[place.index]
    }

    /// - Parameter group: changes of one write.
    private func apply(_ group: ArraySlice<Place>, at path: TreePath, to node: Node?) -> Node? {
        guard let first = group.first else { return node }
        if change(first).path.count <= path.count {
            // At or above: there is no other change then.
            return change(first).node.node(at: path.relative(to: change(first).path))
        }
        return node?.applying(
            group.map { TreeChange(path: change($0).path.relative(to: path), node: change($0).node) })
    }
}

extension PathTrie {
    /// The values below this one, in any order.
    fileprivate func forEachBelow(_ body: (Value) -> Void) {
        for child in children.values {
            if let value = child.value { body(value) }
            child.forEachBelow(body)
        }
    }
}

extension Node {
    /// Itself with values in the place of deferred ones, where the old data is in memory.
    func settled(nowMilliseconds: Int64, old: Node) -> Node {
        do {
            return try resolved(nowMilliseconds: nowMilliseconds, old: old, at: .root)
        } catch {
            preconditionFailure("Reading a node in memory failed: \(error.message)")
        }
    }

    /// Whether anything in it adds to what was there before.
    var hasIncrement: Bool {
        if case .deferred(let value)? = value, value != .timestamp { return true }
        if case .deferred(let value)? = priority, value != .timestamp { return true }
        return children.contains { $0.node.hasIncrement }
    }
}

extension TreeChange {
    func settled(nowMilliseconds: Int64, old: Node) -> TreeChange {
        do {
            return try resolved(nowMilliseconds: nowMilliseconds, old: old)
        } catch {
            preconditionFailure("Reading a node in memory failed: \(error.message)")
        }
    }
}
