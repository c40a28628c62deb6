import HearthModel
import HearthEngine
import HearthTree

/// Replaces the records of a range, and does not write those that are the same.
struct RangeReplacement {
    private let keyspace: Keyspace
    private let range: KeyRange
    private let new: [StoreRecord]
    private let transaction: any StoreTransaction
    private let comparedMax: Int

    /// The number of old records that are compared one by one; above it all records are deleted and put.
    static let comparedMax = 20_000

    /// - Parameter new: in the order of keys.
    init(
        _ keyspace: Keyspace, _ range: KeyRange, by new: [StoreRecord], in transaction: any StoreTransaction,
        comparedMax: Int = Self.comparedMax
    ) {
        self.comparedMax = comparedMax
        self.keyspace = keyspace
        self.range = range
        self.new = new
        self.transaction = transaction
    }

    private enum Step {
        case put(Int)
        case delete([UInt8])
    }

    /// - Returns: whether anything was different.
    func run() throws(Status) -> Bool {
        guard let steps = try compare() else {
            try transaction.delete(keyspace, range, limit: .max)
            for record in new { try transaction.put(keyspace, record.key, record.value) }
            return true
        }
        for step in steps {
            switch step {
            case .put(let index): try transaction.put(keyspace, new[index].key, new[index].value)
            case .delete(let key): try transaction.delete(keyspace, key)
            }
        }
        return !steps.isEmpty
    }

    /// The changes to make; nil when there are too many old records. Nothing is changed under the cursor.
    private func compare() throws(Status) -> [Step]? {
        var steps: [Step] = []
        var index = 0
        var compared = 0
        let cursor = try transaction.scan(keyspace, range, reverse: false, values: true)
        defer { cursor.close() }
        while try cursor.next() {
            compared += 1
            if compared > comparedMax { return nil }
            let key = cursor.key
            var order = 1
            while index < new.count {
                order = UTF8Order.compare(new[index].key, key)
                if order >= 0 { break }
                steps.append(.put(index))
                index += 1
            }
            if index < new.count, order == 0 {
                if new[index].value != cursor.value { steps.append(.put(index)) }
                index += 1
            } else {
                steps.append(.delete(key))
            }
        }
        while index < new.count {
            steps.append(.put(index))
            index += 1
        }
        return steps
    }
}

/// The stored state at and below a location before a change, as far as the change needs it.
struct PresentRecords {
    private let location: [UInt8]
    /// The location's own record, when nothing is below it.
    private let only: TreeRecord?
    let isEmpty: Bool
    let hasChildren: Bool
    /// Of the location.
    let priority: Scalar?
    /// Whether there may be any.
    let hasStringsElsewhere: Bool

    init(_ location: [UInt8], in transaction: any StoreTransaction) throws(Status) {
        self.location = location
        let cursor = try transaction.scan(
            .entries, KeyRange(prefix: location), reverse: false, values: true, dropping: location.count)
        defer { cursor.close() }
        guard try cursor.next() else {
            only = nil
            isEmpty = true
            hasChildren = false
            priority = nil
            hasStringsElsewhere = false
            return
        }
        isEmpty = false
        let own = cursor.key.isEmpty ? try TreeRecord(stored: cursor.value) : nil
        hasChildren = own?.isInner ?? true
        only = hasChildren ? nil : own
        priority = try own?.priority
        hasStringsElsewhere = own?.isStoredElsewhere == true || hasChildren
    }

    /// - Returns: whether anything was different.
    func replace(
        by new: [StoreRecord], in transaction: any StoreTransaction, comparedMax: Int
    ) throws(Status) -> Bool {
        if hasChildren {
            return try RangeReplacement(
                .entries, KeyRange(prefix: location), by: new, in: transaction, comparedMax: comparedMax
            ).run()
        }
        if let only, new.count == 1, new[0].key == location, new[0].value == only.bytes { return false }
        // Only the first can be the location's own.
        if only != nil, new.first?.key != location { try transaction.delete(.entries, location) }
        for record in new { try transaction.put(.entries, record.key, record.value) }
        return true
    }
}

/// The stored form of a node, each list in the order of keys.
struct NewRecords {
    private(set) var records: [StoreRecord] = []
    /// Long strings.
    private(set) var strings: [StoreRecord] = []
    /// Entries of children that have a priority; not of the node itself.
    private(set) var priorities: [StoreRecord] = []

    init(_ node: Node, at location: [UInt8]) {
        add(node, location)
        priorities.sort { UTF8Order.compare($0.key, $1.key) < 0 }
    }

    private mutating func add(_ node: Node, _ location: [UInt8]) {
        if let value = node.value {
            let record = TreeRecord(value, priority: node.priority)
            records.append(StoreRecord(key: location, value: record.bytes))
            if record.isStoredElsewhere, case .string(let string) = value {
                strings.append(StoreRecord(key: location, value: Array(string.utf8)))
            }
            return
        }
        if let priority = node.priority {
            records.append(StoreRecord(key: location, value: TreeRecord(nil, priority: priority).bytes))
        }
        for (key, child) in node.children {
            if let priority = child.priority {
                priorities.append(StoreRecord(key: TreeMutation.priorityEntry(location, priority, key), value: []))
            }
            var childLocation = location
            PathCode.append(key, to: &childLocation)
            add(child, childLocation)
        }
    }
}
