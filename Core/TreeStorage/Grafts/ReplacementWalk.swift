import HearthEngine
import HearthTree

/// Makes the records of a node one after the other, so that they are never all in memory.
struct ReplacementWalk {
    private struct Level {
        var children: Children.Iterator
        let location: [UInt8]
        /// The indexes whose patterns match the path of the level so far.
        let indexes: [TreeIndex]
        let depth: Int
    }

    private var levels: [Level] = []
    private var ready: [(keyspace: Keyspace, record: StoreRecord)] = []

    init(_ change: TreeChange, _ location: [UInt8], _ indexes: [TreeIndex]) {
        enter(change.node, location, indexes, depth: change.path.count)
        ready.reverse()
    }

    mutating func next() -> (keyspace: Keyspace, record: StoreRecord)? {
        while ready.isEmpty {
            guard let last = levels.indices.last else { return nil }
            guard let (key, child) = levels[last].children.next() else {
                levels.removeLast()
                continue
            }
            add(key, child, levels[last].location, levels[last].indexes, levels[last].depth)
            ready.reverse()
        }
        return ready.removeLast()
    }

    private mutating func add(
        _ key: TreeKey, _ child: Node, _ parent: [UInt8], _ indexes: [TreeIndex], _ depth: Int
    ) {
        if let priority = child.priority {
            put(.entries, TreeMutation.priorityEntry(parent, priority, key), [])
        }
        var below: [TreeIndex] = []
        for index in indexes {
            if index.pattern.count == depth {
                put(.entries, index.entry(parent, index.definition.index.value(of: child), key), [])
            } else if index.pattern[depth].map({ $0 == key }) ?? true {
                below.append(index)
            }
        }
        var location = parent
        PathCode.append(key, to: &location)
        enter(child, location, below, depth: depth + 1)
    }

    private mutating func enter(_ node: Node, _ location: [UInt8], _ indexes: [TreeIndex], depth: Int) {
        if let value = node.value {
            let record = TreeRecord(value, priority: node.priority)
            put(.entries, location, record.bytes)
            if record.isStoredElsewhere, case .string(let string) = value {
                put(.documents, location, Array(string.utf8))
            }
            return
        }
        if let priority = node.priority { put(.entries, location, TreeRecord(nil, priority: priority).bytes) }
        levels.append(
            Level(children: node.children.makeIterator(), location: location, indexes: indexes, depth: depth))
    }

    private mutating func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) {
        ready.append((keyspace, StoreRecord(key: key, value: value)))
    }
}
