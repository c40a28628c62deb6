import HearthModel
import HearthTree

/// The checks of a write before it is queued, and the computation of its values when it is made.
extension TreeWrite {
    struct Size {
        /// The approximate size of its data.
        var bytes = 0
        var nodes = 0
    }

    /// The size of a write.
    /// - Throws: INVALID_ARGUMENT when a key, a depth, a string or the whole exceeds the limits. Front ends have
    ///   checked this before, but data whose order cannot be stored must not reach the store.
    func checkedSize() throws(Status) -> Size {
        var size = Size()
        for change in changes {
            do throws(TreeDataError) {
                try TreeLimits.standard.check(change.path, allowingPriority: true)
            } catch {
                throw .invalidArgument(error.message)
            }
            for key in change.path.keys { size.bytes += key.string.utf8.count + 1 }
            if change.isPriority {
                try Self.check(priority: change.node.value)
                if change.node.childCount > 0 { throw Self.invalidPriority }
            }
            try Self.add(change.node, depth: change.location.count, to: &size)
        }
        for change in journal {
            let record = change.record?.count ?? 0
            if record > Limits.treeJournalRecordSizeBytesMax { throw Self.tooLarge }
            size.bytes += change.session.utf8.count + (change.entry?.utf8.count ?? 0) + record
        }
        return size
    }

    private static let tooLarge = Status.invalidArgument(
        "Data to write exceeds the maximum size that can be modified with a single request.")
    private static let invalidPriority = Status.invalidArgument(
        "Invalid data; .priority has to be a number or a string.")

    private static func add(_ node: Node, depth: Int, to size: inout Size) throws(Status) {
        size.bytes += 16
        size.nodes += 1
        if let priority = node.priority {
            try check(priority: priority)
            size.bytes += priority.string?.utf8.count ?? 8
        }
        if let string = node.value?.string {
            if string.utf8.count > Limits.treeStringSizeBytesMax {
                throw .invalidArgument(
                    "Invalid data; a string is longer than \(Limits.treeStringSizeBytesMax) bytes.")
            }
            size.bytes += string.utf8.count
        }
        if size.bytes > Limits.treeWriteSizeBytesMax { throw tooLarge }
        if node.childCount > 0, depth >= Limits.treeDepthMax {
            throw .invalidArgument("Invalid data; deeper than \(Limits.treeDepthMax) levels.")
        }
        for (key, child) in node.children {
            if !TreeLimits.standard.isValid(key) {
                throw .invalidArgument(
                    "Invalid data; the key \"\(key.string.prefix(50))\" can't be empty or contain $ # [ ] / or .")
            }
            size.bytes += key.string.utf8.count
            try add(child, depth: depth + 1, to: &size)
        }
    }

    private static func check(priority: Scalar?) throws(Status) {
        switch priority {
        case nil, .integer, .double, .deferred: break
        case .bool: throw invalidPriority
        case .string(let string):
            if string.utf8.count > Limits.treeStringSizeBytesMax { throw tooLarge }
        }
    }

    /// The changes with all deferred values computed on the tree that the write finds.
    func resolvedChanges(on tree: any TreeData) throws(Status) -> [TreeChange] {
        var resolved: [TreeChange] = []
        resolved.reserveCapacity(changes.count)
        for change in changes {
            resolved.append(try change.resolved(nowMilliseconds: nowMilliseconds, old: tree))
        }
        return resolved
    }
}
