/// The members of a map, or the fields of a document: always sorted by the UTF-8 bytes of their names, each name once.
@usableFromInline package struct MapValue: Sendable {
    @usableFromInline package struct Field: Sendable {
        @usableFromInline package var name: String
        @usableFromInline package var value: Value

        @inlinable
        package init(name: String, value: Value) {
            self.name = name
            self.value = value
        }
    }

    @usableFromInline package internal(set) var fields: [Field]

    @inlinable
    package init() {
        self.init(sorted: [])
    }

    /// - Parameter sorted: fields in the order of their names' UTF-8 bytes, without duplicates.
    @inlinable package init(sorted: [Field]) {
        fields = sorted
    }

    /// Takes fields in any order. Of two fields with one name the later one counts, as in a protobuf map.
    package init(_ unsorted: [Field]) {
        fields = unsorted
        let isSorted = zip(unsorted, unsorted.dropFirst()).allSatisfy { UTF8Order.compare($0.name, $1.name) < 0 }
        if !isSorted { fields = Self.sorted(unsorted) }
    }

    private static func sorted(_ unsorted: [Field]) -> [Field] {
        // Positions keep the sort stable, so that the last of equal names wins.
        let order = unsorted.indices.sorted { left, right in
            let names = UTF8Order.compare(unsorted[left].name, unsorted[right].name)
            return names != 0 ? names < 0 : left < right
        }
        var sorted: [Field] = []
        sorted.reserveCapacity(unsorted.count)
        for index in order {
            if let last = sorted.last, UTF8Order.equal(last.name, unsorted[index].name) { sorted.removeLast() }
            sorted.append(unsorted[index])
        }
        return sorted
    }

    @inlinable package var isEmpty: Bool { fields.isEmpty }
    @inlinable package var count: Int { fields.count }

    /// The position of a name, or where it would be inserted.
    @usableFromInline func position(of name: String) -> (index: Int, found: Bool) {
        if let last = fields.last {
            let order = UTF8Order.compare(last.name, name)
            if order < 0 { return (fields.count, false) }
            if order == 0 { return (fields.count - 1, true) }
        }
        var low = 0
        var high = fields.count
        while low < high {
            let middle = (low + high) / 2
            let order = UTF8Order.compare(fields[middle].name, name)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }

    @inlinable package subscript(name: String) -> Value? {
        let (index, found) = position(of: name)
        return found ? fields[index].value : nil
    }

    package mutating func set(_ name: String, _ value: Value) {
        let (index, found) = position(of: name)
        if found {
            fields[index].value = value
        } else {
            fields.insert(Field(name: name, value: value), at: index)
        }
    }

    @discardableResult
    @inlinable package mutating func remove(_ name: String) -> Bool {
        let (index, found) = position(of: name)
        if found { fields.remove(at: index) }
        return found
    }

    // MARK: Field paths

    /// The value at a path. Paths only lead through maps, never into arrays or vectors.
    package subscript(path path: FieldPath) -> Value? {
        value(at: path.segments[...])
    }

    private func value(at path: ArraySlice<String>) -> Value? {
        guard let first = path.first, let value = self[first] else { return nil }
        let rest = path.dropFirst()
        if rest.isEmpty { return value }
        guard case .map(let map) = value else { return nil }
        return map.value(at: rest)
    }

    /// Sets the value at a path; a value on the path that is not a map is replaced by a map.
    package mutating func set(_ path: FieldPath, _ value: Value) {
        set(path.segments[...], value)
    }

    private mutating func set(_ path: ArraySlice<String>, _ value: Value) {
        guard let first = path.first else { return }
        let rest = path.dropFirst()
        if rest.isEmpty { return set(first, value) }
        let (index, found) = position(of: first)
        if !found { fields.insert(Field(name: first, value: .null), at: index) }
        var inner = takeMap(at: index) ?? MapValue()
        inner.set(rest, value)
        fields[index].value = .map(inner)
    }

    /// Deletes the value at a path; does nothing when a map on the path is missing.
    package mutating func remove(_ path: FieldPath) {
        remove(path.segments[...])
    }

    private mutating func remove(_ path: ArraySlice<String>) {
        guard let first = path.first else { return }
        let rest = path.dropFirst()
        if rest.isEmpty {
            remove(first)
            return
        }
        let (index, found) = position(of: first)
        guard found, var inner = takeMap(at: index) else { return }
        inner.remove(rest)
        fields[index].value = .map(inner)
    }

    /// Moves a map out to be changed and put back. A second reference in `fields` would copy it at every change, and
    /// many paths into one large map would cost the square of its size.
    private mutating func takeMap(at index: Int) -> MapValue? {
        guard case .map(let map) = fields[index].value else { return nil }
        fields[index].value = .null
        return map
    }
}

extension MapValue: Equatable {
    @inlinable package static func == (lhs: MapValue, rhs: MapValue) -> Bool {
        lhs.fields.count == rhs.fields.count
            && zip(lhs.fields, rhs.fields).allSatisfy { UTF8Order.equal($0.name, $1.name) && $0.value == $1.value }
    }
}
