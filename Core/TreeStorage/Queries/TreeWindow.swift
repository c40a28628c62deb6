import HearthModel
import HearthEngine
import HearthTree

/// The children of a query's window, in the order of its index.
package struct TreeWindow: Sendable {
    package var children: [(key: TreeKey, node: Node)]
    /// Whether an index was used: always for keys and priorities; else all children were read and sorted.
    package var isIndexed: Bool
}

/// The same without the values of the children.
package struct TreeWindowKeys: Sendable {
    /// The key index has no values. A number may be returned as a double.
    package var children: [(key: TreeKey, value: TreeIndexValue)]
    package var isIndexed: Bool
}

extension TreeView {
    /// The children that match a query. With an index the cost depends on the window; without one, on all children.
    /// - Throws: RESOURCE_EXHAUSTED when more than `Limits.treeReadSizeBytesMax` would have to be read.
    package func result(of query: TreeQuery, at path: TreePath) throws(Status) -> TreeWindow {
        let location = PathCode.location(path)
        switch try source(of: query, path, location) {
        case .keys(let bounds):
            return TreeWindow(children: try nodes(location, bounds), isIndexed: true)
        case .priorities:
            let found = try byPriority(query, location, WindowReads(check: check))
            return TreeWindow(children: try nodes(of: found, location), isIndexed: true)
        case .index(let index):
            let found = try byIndex(query, location, index, WindowReads(check: check))
            return TreeWindow(children: try nodes(of: found, location), isIndexed: true)
        case .everything(let isIndexed):
            return TreeWindow(children: query.orderedChildren(of: try node(location)), isIndexed: isIndexed)
        }
    }

    /// Whether a window is found without a scan of all children.
    package func isIndexed(_ query: TreeQuery, at path: TreePath) throws(Status) -> Bool {
        if case .everything = try source(of: query, path, PathCode.location(path)) { false } else { true }
    }

    /// Whether the data at a location, or the result of a query there, is small. The check costs little as well.
    /// - Parameters:
    ///   - sizeBytesMax: the limit of small data.
    ///   - readsMax: the number of children and entries that may be read.
    package func isSmall(
        _ query: TreeQuery?, at path: TreePath, sizeBytesMax: Int, readsMax: Int
    ) throws(Status) -> Bool {
        if let query, let limit = query.limit, limit <= readsMax,
            let isSmall = try isWindowSmall(query, path, sizeBytesMax, readsMax)
        {
            return isSmall
        }
        if try sizeEstimate(at: path, upTo: sizeBytesMax) <= sizeBytesMax { return true }
        guard let query, query.limit == nil else { return false }
        return try isWindowSmall(query, path, sizeBytesMax, readsMax) ?? false
    }

    /// - Returns: nil when it isn't found with this number of reads.
    private func isWindowSmall(
        _ query: TreeQuery, _ path: TreePath, _ sizeBytesMax: Int, _ readsMax: Int
    ) throws(Status) -> Bool? {
        let children: [(key: TreeKey, value: TreeIndexValue)]
        do throws(Status) {
            children = try keys(of: query, at: path, readsMax: readsMax).children
        } catch {
            if error == SubtreeWalk.tooLarge { return nil }
            throw error
        }
        var left = sizeBytesMax
        for (key, _) in children {
            left -= try sizeEstimate(at: path.child(key), upTo: left)
            if left < 0 { return false }
        }
        return true
    }

    /// Their keys and order values.
    package func keys(of query: TreeQuery, at path: TreePath) throws(Status) -> TreeWindowKeys {
        try keys(of: query, at: path, readsMax: .max)
    }

    /// - Parameters:
    ///   - readsMax: the number of children and entries that may be read.
    ///   - keysMax: the number of keys that may be found.
    /// - Throws: RESOURCE_EXHAUSTED when a limit is exceeded, and always when no index serves the query but `readsMax`
    ///   is given.
    package func keys(
        of query: TreeQuery, at path: TreePath, readsMax: Int, keysMax: Int = Limits.treeWindowKeysMax
    ) throws(Status) -> TreeWindowKeys {
        let location = PathCode.location(path)
        let reads = WindowReads(readsMax, keysMax: keysMax, check: check)
        let found: [(key: TreeKey, value: TreeIndexValue)]
        switch try source(of: query, path, location) {
        case .keys(let bounds): found = try keys(location, bounds, reads).map { ($0, .null) }
        case .priorities: found = try byPriority(query, location, reads)
        case .index(let index): found = try byIndex(query, location, index, reads)
        case .everything(let isIndexed):
            if readsMax < .max { throw SubtreeWalk.tooLarge }
            var collector = IndexValueCollector(query, keysMax: keysMax)
            var walk = try SubtreeWalk(location, in: snapshot, sizeBytesMax: Limits.treeReadSizeBytesMax, check: check)
            try walk.run(&collector)
            return TreeWindowKeys(children: collector.window(), isIndexed: isIndexed)
        }
        return TreeWindowKeys(children: found, isIndexed: true)
    }

    /// The method by which a window is found.
    private enum Source {
        case keys(KeyBounds)
        case priorities
        case index(TreeIndex)
        case everything(isIndexed: Bool)
    }

    private struct KeyBounds {
        var range: KeyRange
        var limit: Int
        var isReverse: Bool
    }

    private func source(of query: TreeQuery, _ path: TreePath, _ location: [UInt8]) throws(Status) -> Source {
        switch query.index {
        case .key:
            return .keys(bounds(query, location, start: query.start?.key, end: query.end?.key))
        case .priority:
            if query.isUnfiltered { return .everything(isIndexed: true) }
            let entries = KeyRange(prefix: TreeMutation.priorityPrefix(location) + [PathCode.pathEnd])
            if try snapshot.count(.entries, entries, limit: 1) > 0 { return .priorities }
            // No child has a priority: all have the same position, and the keys decide.
            let start = query.start.map { $0.value == nil ? $0.key : .max }
            let end = query.end.map { $0.value == nil ? $0.key : .max }
            return .keys(bounds(query, location, start: start, end: end))
        case .value, .child:
            guard let index = indexes.ready(for: query.index, at: path) else { return .everything(isIndexed: false) }
            return query.isUnfiltered ? .everything(isIndexed: true) : .index(index)
        }
    }

    // MARK: In the order of keys

    private func bounds(
        _ query: TreeQuery, _ location: [UInt8], start: TreeQuery.BoundKey?, end: TreeQuery.BoundKey?
    ) -> KeyBounds {
        var range = PathCode.below(location)
        switch start {
        case nil, .min: break
        case .max: range.lower = PathCode.after(location)
        case .key(let key):
            let bound = PathCode.bound(location, key)
            range.lower = query.start?.isInclusive == false ? PathCode.after(bound) : bound
        }
        switch end {
        case nil, .max: break
        case .min: range.upper = range.lower
        case .key(let key):
            let bound = PathCode.bound(location, key)
            range.upper = query.end?.isInclusive == false ? bound : PathCode.after(bound)
        }
        return KeyBounds(range: range, limit: query.limit ?? .max, isReverse: query.isLimitedToLast)
    }

    private func keys(_ location: [UInt8], _ bounds: KeyBounds, _ reads: WindowReads) throws(Status) -> [TreeKey] {
        if bounds.range.isEmpty { return [] }
        let walk = try ChildWalk(location, in: snapshot, range: bounds.range, reverse: bounds.isReverse)
        defer { walk.close() }
        var keys: [TreeKey] = []
        while keys.count < bounds.limit, try walk.next() {
            try reads.count()
            if keys.count >= reads.keysMax { throw SubtreeWalk.tooLarge }
            keys.append(walk.key)
        }
        return bounds.isReverse ? keys.reversed() : keys
    }

    private func nodes(_ location: [UInt8], _ bounds: KeyBounds) throws(Status) -> [(key: TreeKey, node: Node)] {
        var bounds = bounds
        if bounds.isReverse, bounds.limit < .max {
            // The keys where the last of them begin; then one walk over them.
            guard let first = try keys(location, bounds, WindowReads(check: check)).first else { return [] }
            bounds.range.lower = PathCode.bound(location, first)
        }
        if bounds.range.isEmpty { return [] }
        var assembler = NodeAssembler()
        var walk = try SubtreeWalk(
            location, in: snapshot, range: bounds.range, sizeBytesMax: Limits.treeReadSizeBytesMax, check: check)
        try walk.run(&assembler, children: bounds.limit)
        return Array(assembler.result.children)
    }

    // MARK: By entries

    /// Nodes of children that entries named.
    private func nodes(
        of found: [(key: TreeKey, value: TreeIndexValue)], _ location: [UInt8]
    ) throws(Status) -> [(key: TreeKey, node: Node)] {
        var nodes: [(key: TreeKey, node: Node)] = []
        nodes.reserveCapacity(found.count)
        var sizeBytesMax = Limits.treeReadSizeBytesMax
        for (key, _) in found {
            var childLocation = location
            PathCode.append(key, to: &childLocation)
            var assembler = NodeAssembler()
            var walk = try SubtreeWalk(childLocation, in: snapshot, sizeBytesMax: sizeBytesMax, check: check)
            try walk.run(&assembler)
            sizeBytesMax -= walk.sizeBytes
            nodes.append((key, assembler.result))
        }
        return nodes
    }

    private func byIndex(
        _ query: TreeQuery, _ location: [UInt8], _ index: TreeIndex, _ reads: WindowReads
    ) throws(Status) -> [(key: TreeKey, value: TreeIndexValue)] {
        let entries = EntryWalk(
            prefix: index.prefix(location) + [PathCode.pathEnd], query: query, snapshot: snapshot,
            lookUp: { [self] key throws(Status) in
                var childLocation = location
                PathCode.append(key, to: &childLocation)
                return try indexed(childLocation, by: index) ?? .null
            }, reads: reads)
        let found = try entries.take(query.limit ?? .max)
        return query.isLimitedToLast ? found.reversed() : found
    }

    /// The order is: children without a priority, by key, then the others by their entries. Those without are found by
    /// skipping those that have one. The first few of very many children that all have a priority cost one step for
    /// each child, unless a bound excludes those without; the last few do not.
    private func byPriority(
        _ query: TreeQuery, _ location: [UInt8], _ reads: WindowReads
    ) throws(Status) -> [(key: TreeKey, value: TreeIndexValue)] {
        let limit = query.limit ?? .max
        let entries = EntryWalk(
            prefix: TreeMutation.priorityPrefix(location) + [PathCode.pathEnd], query: query, snapshot: snapshot,
            lookUp: { [self] key throws(Status) in
                var childLocation = location
                PathCode.append(key, to: &childLocation)
                return TreeIndexValue(try record(childLocation)?.priority)
            }, reads: reads)
        if query.isLimitedToLast {
            var found = try entries.take(limit)
            if found.count < limit { found += try withoutPriority(query, location, limit: limit - found.count, reads) }
            return found.reversed()
        }
        var found = try withoutPriority(query, location, limit: limit, reads)
        if found.count < limit { found += try entries.take(limit - found.count) }
        return found
    }

    /// Children without a priority, in the direction of the limit.
    private func withoutPriority(
        _ query: TreeQuery, _ location: [UInt8], limit: Int, _ reads: WindowReads
    ) throws(Status) -> [(key: TreeKey, value: TreeIndexValue)] {
        if let start = query.start, start.value != nil { return [] }
        let end = query.end.map { $0.value == nil ? $0.key : .max }
        let range = bounds(query, location, start: query.start?.key, end: end).range
        if range.isEmpty { return [] }
        let walk = try ChildWalk(location, in: snapshot, range: range, reverse: query.isLimitedToLast)
        defer { walk.close() }
        var found: [(key: TreeKey, value: TreeIndexValue)] = []
        while found.count < limit, try walk.next() {
            try reads.count()
            // Downwards a walk reaches an inner node from below, before its own record.
            let own = walk.isOwnRecord || !query.isLimitedToLast ? try walk.record : try record(walk.location)
            if own?.hasPriority == true { continue }
            if found.count >= reads.keysMax { throw SubtreeWalk.tooLarge }
            found.append((walk.key, .null))
        }
        return found
    }
}

/// Counts the reads for a window.
final class WindowReads {
    private var left: Int
    /// The number of keys that may be found.
    let keysMax: Int
    private let check: ReadCheck?

    init(_ most: Int = .max, keysMax: Int = Limits.treeWindowKeysMax, check: ReadCheck?) {
        left = most
        self.keysMax = keysMax
        self.check = check
    }

    /// - Throws: RESOURCE_EXHAUSTED when a limit was exceeded.
    func count() throws(Status) {
        if left == 0 { throw SubtreeWalk.tooLarge }
        left -= 1
        try check?.countRead()
    }
}
