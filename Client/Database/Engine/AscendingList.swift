/// Values by ascending numbers. The cost of adding, finding and removing a value is that of a binary search,
/// independent of the number of values otherwise.
struct AscendingList<Value> {
    private var entries: [(id: Int64, value: Value?)] = []
    /// The index of the first entry that is not removed.
    private var head = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    var first: (id: Int64, value: Value)? {
        guard head < entries.count, let value = entries[head].value else { return nil }
        return (entries[head].id, value)
    }

    /// - Parameter id: higher than those of all that were added before.
    mutating func append(_ id: Int64, _ value: Value) {
        entries.append((id, value))
        count += 1
    }

    @discardableResult
    mutating func remove(_ id: Int64) -> Value? {
        let position = position(of: id)
        guard position < entries.count, entries[position].id == id, let value = entries[position].value else {
            return nil
        }
        entries[position].value = nil
        count -= 1
        while head < entries.count, entries[head].value == nil { head += 1 }
        while entries.count > head, entries[entries.count - 1].value == nil { entries.removeLast() }
        // Removed entries stay until they outnumber the others.
        if entries.count > 2 * count + 8 {
            entries.removeAll { $0.value == nil }
            head = 0
        }
        return value
    }

    /// The index of the first entry whose number is not below a number.
    private func position(of id: Int64) -> Int {
        var low = head
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The last value below a number that satisfies a condition, searched from the end.
    func last(
        before end: Int64 = .max, where isWanted: (Int64) -> Bool = { _ in true }
    ) -> (id: Int64, value: Value)? {
        var position = end == .max ? entries.count : position(of: end)
        while position > head {
            position -= 1
            if let value = entries[position].value, isWanted(entries[position].id) {
                return (entries[position].id, value)
            }
        }
        return nil
    }

    /// The first value from a number on that satisfies a condition.
    func first(from start: Int64, where isWanted: (Int64, Value) -> Bool) -> Int64? {
        for entry in entries[position(of: start)...] {
            if let value = entry.value, isWanted(entry.id, value) { return entry.id }
        }
        return nil
    }

    /// The values with numbers in a half-open range.
    func forEach(from start: Int64 = .min, before end: Int64 = .max, _ body: (Int64, Value) -> Void) {
        for entry in entries[position(of: start)...] {
            if entry.id >= end { return }
            if let value = entry.value { body(entry.id, value) }
        }
    }
}
