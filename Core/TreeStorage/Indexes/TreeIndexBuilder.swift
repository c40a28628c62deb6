import HearthModel
import HearthEngine
import HearthTree

/// Fills new indexes and deletes old ones, a slice at a time between groups of writes.
///
/// Writes keep the entries of every index that isn't being deleted up to date from the moment when it is defined. The
/// builder adds the entries of older children, by one walk over the tree. The position of a walk isn't stored: after a
/// restart it begins again, and puts entries that exist already. Used by the writer's thread alone.
final class TreeIndexBuilder: @unchecked Sendable {
    private let store: any Store
    /// The position of the walk for the index that is being filled.
    private var position: (index: UInt32, location: [UInt8])?
    /// Indexes that are complete or deleted, but not yet changed in the list: making a new list costs as much as there
    /// are indexes.
    private var finished: Set<UInt32> = []

    init(store: any Store) { self.store = store }

    // MARK: Definitions

    /// Keeps the indexes that are defined, adds new ones, and deletes the others.
    func change(_ indexes: TreeIndexes, to definitions: [TreeIndexDefinition]) throws(Status) -> TreeIndexes {
        if definitions.count > Limits.treeIndexesMax {
            throw .invalidArgument(
                "A database may have at most \(Limits.treeIndexesMax) indexes; these are \(definitions.count).")
        }
        let indexes = withoutFinished(indexes)
        finished = []
        return try store.write { transaction throws(Status) in
            var next = try transaction.get(.meta, TreeMeta.nextIndex).map { TreeMeta.id($0) } ?? 0
            guard next < UInt32.max / 2 else { throw Status(.dataLoss, "The number of the next index is damaged.") }
            var all: [TreeIndex] = indexes.all.filter { $0.state == .going }
            var present: [TreeIndexLikeness: TreeIndex] = [:]
            for index in indexes.kept { present[index.likeness] = index }
            var wanted: [TreeIndex] = []
            var known: Set<TreeIndexLikeness> = []
            for definition in definitions {
                // Keys and priorities are always in order.
                guard let new = TreeIndex(id: next, definition: definition, state: .building),
                    known.insert(new.likeness).inserted
                else { continue }
                if let present = present[new.likeness] {
                    wanted.append(present)
                } else {
                    wanted.append(new)
                    next += 1
                    try transaction.put(.meta, Self.key(new), new.stored)
                }
            }
            for var old in indexes.kept where !known.contains(old.likeness) {
                old.state = .going
                all.append(old)
                try transaction.put(.meta, Self.key(old), old.stored)
            }
            try transaction.put(.meta, TreeMeta.nextIndex, TreeMeta.encode(next))
            return TreeIndexes(all + wanted)
        }
    }

    private static func key(_ index: TreeIndex) -> [UInt8] { TreeMeta.indexPrefix + TreeMeta.encode(index.id) }

    // MARK: Slices

    /// Does a part of the pending work. Indexes with few children share a part: each of them costs a few steps.
    /// - Returns: the indexes; changed when some are complete or deleted.
    func slice(of indexes: TreeIndexes) throws(Status) -> TreeIndexes {
        let open = indexes.all.filter { !finished.contains($0.id) }
        let due = open.filter { $0.state == .going } + open.filter { $0.state == .building }
        let progress = try store.write { transaction throws(Status) in
            try work(on: due, TreeView(transaction, version: 0, indexes: indexes, isOwner: false), transaction)
        }
        position = progress.position
        finished.formUnion(progress.done)
        // A new list is made when half of the pending work is done, and before an index that takes more than a slice.
        if progress.position == nil, finished.count < due.count - progress.done.count { return indexes }
        let changed = withoutFinished(indexes)
        finished = []
        return changed
    }

    private func withoutFinished(_ indexes: TreeIndexes) -> TreeIndexes {
        if finished.isEmpty { return indexes }
        return TreeIndexes(
            indexes.all.compactMap { index in
                guard finished.contains(index.id) else { return index }
                if index.state == .going { return nil }
                var index = index
                index.state = .ready
                return index
            })
    }

    private struct Progress {
        /// Indexes that are complete or deleted.
        var done: Set<UInt32> = []
        var position: (index: UInt32, location: [UInt8])?
    }

    private func work(
        on due: [TreeIndex], _ view: TreeView, _ transaction: any StoreTransaction
    ) throws(Status) -> Progress {
        var progress = Progress()
        var left = Limits.treeIndexSliceMax
        for index in due where left > 0 {
            if index.state == .going {
                guard try delete(index, &left, transaction) else { break }
            } else {
                let location = position.flatMap { $0.index == index.id ? $0.location : nil } ?? [PathCode.Space.records]
                if let next = try build(index, from: location, &left, view, transaction) {
                    progress.position = (index.id, next)
                    break
                }
            }
            progress.done.insert(index.id)
        }
        return progress
    }

    /// The cost of an index without entries to build or delete.
    private static let stepsPerIndex = 4

    /// - Returns: the position to continue at; nil when the index is complete.
    private func build(
        _ index: TreeIndex, from location: [UInt8], _ left: inout Int, _ view: TreeView,
        _ transaction: any StoreTransaction
    ) throws(Status) -> [UInt8]? {
        let (found, next) = try index.children(from: location, max: left, in: view)
        for (parent, child, key) in found {
            guard let value = try view.indexed(child, by: index) else { continue }
            try transaction.put(.entries, index.entry(parent, value, key), [])
        }
        left -= found.count + Self.stepsPerIndex
        if let next { return next }
        var complete = index
        complete.state = .ready
        try transaction.put(.meta, Self.key(index), complete.stored)
        return nil
    }

    /// - Returns: whether no entry of the index is left.
    private func delete(
        _ index: TreeIndex, _ left: inout Int, _ transaction: any StoreTransaction
    ) throws(Status) -> Bool {
        let range = KeyRange(prefix: index.prefix([PathCode.Space.records]))
        let limit = left
        let deleted = try transaction.delete(.entries, range, limit: limit)
        left -= deleted + Self.stepsPerIndex
        if deleted == limit { return false }
        try transaction.delete(.meta, Self.key(index))
        return true
    }
}

extension TreeIndex {
    /// Children that the index orders, in the order of their locations.
    /// - Parameter location: the position at which the walk begins or continues.
    /// - Returns: at most `max` children, and the position to continue at; nil at the end.
    fileprivate func children(
        from location: [UInt8], max: Int, in view: TreeView
    ) throws(Status) -> (found: [(parent: [UInt8], child: [UInt8], key: TreeKey)], next: [UInt8]?) {
        var found: [(parent: [UInt8], child: [UInt8], key: TreeKey)] = []
        let range = KeyRange(lower: location, upper: PathCode.after([PathCode.Space.records]))
        let cursor = try view.snapshot.scan(.entries, range, reverse: false, values: false)
        defer { cursor.close() }
        var steps = 0
        while try cursor.next() {
            // Visited records count, too: a pattern may match little of a large tree.
            steps += 1
            if found.count >= max || steps > max * 2 { return (found, cursor.key) }
            switch try step(cursor.key) {
            case .child(let parentEnd, let childEnd):
                let bytes = cursor.key
                let child = Array(bytes[..<childEnd])
                found.append((Array(bytes[..<parentEnd]), child, PathCode.key(bytes[parentEnd..<childEnd])))
                try cursor.seek(PathCode.after(child))
            case .seek(let target): try cursor.seek(target)
            case .pass: break
            }
        }
        return (found, nil)
    }

    private enum Step {
        /// The record is of a child or below it; the ends of the parent's and of the child's keys.
        case child(parentEnd: Int, childEnd: Int)
        /// Nothing matches before.
        case seek([UInt8])
        /// Too high in the tree.
        case pass
    }

    private func step(_ bytes: [UInt8]) throws(Status) -> Step {
        var start = 1
        for part in pattern {
            if start == bytes.count { return .pass }
            let end = try PathCode.end(of: bytes, from: start)
            if let part {
                var wanted = Array(bytes[..<start])
                PathCode.append(part, to: &wanted)
                let order = UTF8Order.compare(Array(bytes[..<end]), wanted)
                if order < 0 { return .seek(wanted) }
                if order > 0 { return .seek(PathCode.after(Array(bytes[..<start]))) }
            }
            start = end
        }
        if start == bytes.count { return .pass }
        return .child(parentEnd: start, childEnd: try PathCode.end(of: bytes, from: start))
    }
}
