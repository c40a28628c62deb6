import HearthModel

/// A walk over one version of a tree. In a transaction that changes the tree meanwhile, the rest of the walk sees the
/// changes.
final class MemoryStoreCursor: KeyCursor {
    private let view: MemoryStoreView
    private let keyspace: Keyspace
    private let reverse: Bool
    private let values: Bool
    private let dropping: Int
    /// What is left of the range.
    private var lower: [UInt8]
    private var upper: [UInt8]?
    private var walk: TableWalk
    /// The view's, when `walk` was made.
    private var changes: Int
    private var phase = Phase.unstarted

    private enum Phase {
        /// The next step descends from the root.
        case unstarted
        case walking
        case ended
    }

    init(
        _ view: MemoryStoreView, _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) {
        self.view = view
        self.keyspace = keyspace
        self.reverse = reverse
        self.values = values
        self.dropping = dropping
        lower = range.lower
        upper = range.upper
        walk = TableWalk(view.root(keyspace))
        changes = view.changes
    }

    var key: [UInt8] {
        precondition(!view.isClosed, "the snapshot is closed")
        guard let key = walk.entry?.key, key.count > dropping else { return [] }
        return RawKey(key.base + dropping, key.count - dropping).bytes
    }

    var value: [UInt8] {
        precondition(!view.isClosed, "the snapshot is closed")
        guard values, let entry = walk.entry else { return [] }
        return [UInt8](entry.value)
    }

    func withRow(
        _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) {
        precondition(!view.isClosed, "the snapshot is closed")
        guard let entry = walk.entry else { return }
        let key = UnsafeRawBufferPointer(start: entry.key.base, count: entry.key.count)
        try body(
            UnsafeRawBufferPointer(rebasing: key.dropFirst(dropping)),
            values ? entry.value : UnsafeRawBufferPointer(start: nil, count: 0))
    }

    func next() throws(Status) -> Bool {
        if phase == .ended { return false }
        try view.check()
        if view.changes != changes { restart() }
        if phase == .walking {
            if reverse { walk.previous() } else { walk.next() }
        } else {
            descend()
            phase = .walking
        }
        guard let entry = walk.entry, !isOutside(entry.key) else {
            close()
            return false
        }
        return true
    }

    func seek(_ target: [UInt8]) throws(Status) {
        if phase == .ended { return }
        try view.check()
        if phase == .walking, let entry = walk.entry {
            let order = target.withKey { $0.compare(entry.key) }
            if reverse ? order >= 0 : order <= 0 { return }
        }
        if reverse {
            let bound = target + [0]
            if let upper, UTF8Order.compare(bound, upper) >= 0 { return }
            upper = bound
        } else {
            if UTF8Order.compare(target, lower) <= 0 { return }
            lower = target
        }
        phase = .unstarted
    }

    func close() {
        phase = .ended
        walk = TableWalk(nil)
    }

    private func descend() {
        if !reverse {
            lower.withKey { walk.moveUp(to: $0) }
        } else if let upper {
            upper.withKey { walk.moveDown(below: $0) }
        } else {
            walk.moveDown(below: nil)
        }
    }

    /// The transaction has changed its trees: what is behind the present key is looked up in the new state.
    private func restart() {
        changes = view.changes
        if phase == .walking, let key = walk.entry?.key.bytes {
            if reverse { upper = key } else { lower = key + [0] }
            phase = .unstarted
        }
        walk = TableWalk(view.root(keyspace))
    }

    private func isOutside(_ key: RawKey) -> Bool {
        if reverse { return lower.withKey { key.compare($0) < 0 } }
        return upper.map { $0.withKey { key.compare($0) >= 0 } } ?? false
    }
}
