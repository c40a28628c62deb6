/// The values of a leaf, which cost nothing while all of them are empty, as those of index entries are.
struct MemoryStoreValues {
    /// Empty while all values are empty: copying an array of them counts a reference for each.
    private var values: [[UInt8]] = []
    private(set) var count = 0

    subscript(index: Int) -> [UInt8] {
        get { values.isEmpty ? [] : values[index] }
        set {
            if values.isEmpty, newValue.isEmpty { return }
            materialize()
            values[index] = newValue
        }
    }

    private mutating func materialize() {
        if values.isEmpty { values = Array(repeating: [], count: count) }
    }

    mutating func insert(_ value: [UInt8], at index: Int) {
        if !value.isEmpty { materialize() }
        // For an empty leaf, the array was not made.
        if !values.isEmpty || !value.isEmpty { values.insert(value, at: index) }
        count += 1
    }

    mutating func remove(at index: Int) {
        if !values.isEmpty { values.remove(at: index) }
        count -= 1
    }

    /// Removes the values from `index` on and returns them.
    mutating func split(at index: Int) -> MemoryStoreValues {
        var tail = MemoryStoreValues()
        tail.count = count - index
        count = index
        if !values.isEmpty {
            tail.values = Array(values[index...])
            values.removeSubrange(index...)
        }
        return tail
    }

    mutating func append(_ other: MemoryStoreValues) {
        if !values.isEmpty || !other.values.isEmpty {
            materialize()
            values += other.values.isEmpty ? Array(repeating: [], count: other.count) : other.values
        }
        count += other.count
    }
}
