import HearthModel
import HearthEngine

/// A transaction that sees the complete tree; a graft may be made in it.
final class TreeTransaction: StoreTransaction {
    private enum Form {
        case plain
        case ranges(GraftMap)
        case delta(TreeDeltaMap)
        /// The tree, beside a shadow of it that must not change with it.
        case beside(TreeShadow)
    }

    private let inner: any StoreTransaction
    private let store: TreeStore
    private var form = Form.plain

    init(_ inner: any StoreTransaction, _ store: TreeStore) {
        self.inner = inner
        self.store = store
    }

    func show(_ graft: TreeGraft, _ boundary: GraftBoundary) throws(Status) {
        if let delta = graft.delta {
            form = .delta(try TreeDeltaMap(delta, in: inner))
        } else {
            form = .ranges(GraftMap(graft: graft, boundary: boundary))
        }
    }

    /// From here on the ranges of a graft contain their staged records.
    func begin(_ graft: TreeGraft) throws(Status) {
        store.begin(graft)
        try show(graft, try graft.begin(inner))
    }

    /// Runs an operation on a shadow of the tree.
    func work<Result>(
        on shadow: TreeShadow, _ body: (ShadowTransaction) throws(Status) -> Result
    ) throws(Status) -> Result {
        try body(ShadowTransaction(inner, shadow))
    }

    /// Runs an operation whose changes must not appear in a shadow, except those that the shadow has made itself.
    func work<Result>(beside shadow: TreeShadow, _ body: () throws(Status) -> Result) throws(Status) -> Result {
        form = .beside(shadow)
        defer { form = .plain }
        return try body()
    }

    private var map: (any StoredTreeMap)? {
        switch form {
        case .plain, .beside: nil
        case .ranges(let map): map
        case .delta(let map): map
        }
    }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) -> [UInt8]? {
        guard let map else { return try inner.get(keyspace, key) }
        return try map.get(inner, keyspace, key)
    }

    func scan(
        _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int
    ) throws(Status) -> any KeyCursor {
        guard let map else {
            return try inner.scan(keyspace, range, reverse: reverse, values: values, dropping: dropping)
        }
        return try map.scan(inner, keyspace, range, reverse: reverse, values: values, dropping: dropping)
    }

    func count(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        guard let map else { return try inner.count(keyspace, range, limit: limit) }
        return try map.count(inner, keyspace, range, limit: limit)
    }

    func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) throws(Status) {
        if TreeDelta.isOfTree(keyspace) {
            switch form {
            case .plain: break
            case .ranges(let map):
                if map.isStaged(keyspace, key) { return try inner.put(keyspace, map.staged(key), value) }
            case .delta(let map):
                let staged = map.delta.staged(key)
                if try map.isHidden(key, inner, keyspace) { return try inner.put(keyspace, staged, value) }
                try inner.delete(keyspace, staged)
            case .beside(let shadow): try shadow.keep(keyspace, key, before: value, inner)
            }
        }
        try inner.put(keyspace, key, value)
    }

    func delete(_ keyspace: Keyspace, _ key: [UInt8]) throws(Status) {
        if TreeDelta.isOfTree(keyspace) {
            switch form {
            case .plain: break
            case .ranges(let map):
                if map.isStaged(keyspace, key) { return try inner.delete(keyspace, map.staged(key)) }
            case .delta(let map): try inner.delete(keyspace, map.delta.staged(key))
            case .beside(let shadow): try shadow.keep(keyspace, key, before: nil, inner)
            }
        }
        // The records that are hidden here will be deleted anyway.
        try inner.delete(keyspace, key)
    }

    func delete(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        guard TreeDelta.isOfTree(keyspace) else { return try inner.delete(keyspace, range, limit: limit) }
        switch form {
        case .plain: return try inner.delete(keyspace, range, limit: limit)
        case .ranges(let map):
            var count = 0
            for segment in map.segments(keyspace, range) {
                if count >= limit { break }
                count += try inner.delete(keyspace, map.location(segment), limit: limit == .max ? .max : limit - count)
            }
            return count
        case .delta: return try deleteEach(keyspace, range, limit: limit)
        case .beside(let shadow):
            if limit < .max { return try deleteEach(keyspace, range, limit: limit) }
            try shadow.keep(keyspace, range, inner)
            return try inner.delete(keyspace, range, limit: limit)
        }
    }

    /// Deletes the visible records; hidden ones cost nothing.
    private func deleteEach(_ keyspace: Keyspace, _ range: KeyRange, limit: Int) throws(Status) -> Int {
        var keys: [[UInt8]] = []
        do {
            let cursor = try scan(keyspace, range, reverse: false, values: false, dropping: 0)
            defer { cursor.close() }
            while keys.count < limit, try cursor.next() { keys.append(cursor.key) }
        }
        for key in keys { try delete(keyspace, key) }
        return keys.count
    }

    func close() { inner.close() }
}
