import HearthModel

/// Collects a map's fields in the order of arrival, which nearly always is their sorted order.
struct MapBuilder {
    private var fields: [MapValue.Field] = []
    private var isSorted = true

    init() {}

    init(_ map: MapValue) {
        fields = map.fields
    }

    @inline(__always)
    var isEmpty: Bool { fields.isEmpty }

    /// The number of fields so far, duplicates included.
    var count: Int { fields.count }
    /// A duplicate name; known after `take`.
    private(set) var firstDuplicate: String?

    @inline(__always)
    mutating func append(_ name: String, _ value: Value) {
        let count = fields.count
        if count > 0, isSorted, UTF8Order.compare(fields[count &- 1].name, name) >= 0 { isSorted = false }
        fields.append(MapValue.Field(name: name, value: value))
    }

    /// Like `append`, when the caller knows whether the name sorts after the last one.
    @inline(__always)
    mutating func append(_ name: String, _ value: Value, isBehindLast: Bool) {
        if !isBehindLast { isSorted = false }
        fields.append(MapValue.Field(name: name, value: value))
    }

    /// Reserves capacity for fields that follow.
    @inline(__always)
    mutating func reserve(_ count: Int) {
        fields.reserveCapacity(fields.count &+ count)
    }

    /// The map. Of fields with one name the last one counts.
    mutating func take() -> MapValue {
        if !isSorted { sort() }
        return MapValue(sorted: fields)
    }

    /// The map, or the vector that it represents: exactly `__type__` = `__vector__` and `value` = an array of doubles
    /// only. Maps that resemble a vector stay maps; validation rejects those, and vectors without elements, where it
    /// matters.
    mutating func takeValue() -> Value {
        let map = take()
        if fields.count == 2, let vector = Self.vector(map) { return .vector(vector) }
        return .map(map)
    }

    static func vector(_ map: MapValue) -> [Double]? {
        guard map.count == 2, UTF8Order.equal(map.fields[0].name, VectorForm.typeKey),
            UTF8Order.equal(map.fields[1].name, VectorForm.valueKey), case .string(let type) = map.fields[0].value,
            UTF8Order.equal(type, VectorForm.typeName), case .array(let elements) = map.fields[1].value
        else { return nil }
        var vector: [Double] = []
        vector.reserveCapacity(elements.count)
        for element in elements {
            guard case .double(let number) = element else { return nil }
            vector.append(number)
        }
        return vector
    }

    private mutating func sort() {
        // Positions keep the sort stable, so that the last of equal names wins.
        let order = fields.indices.sorted { left, right in
            let names = UTF8Order.compare(fields[left].name, fields[right].name)
            return names != 0 ? names < 0 : left < right
        }
        var sorted: [MapValue.Field] = []
        sorted.reserveCapacity(fields.count)
        for index in order {
            if let last = sorted.last, UTF8Order.equal(last.name, fields[index].name) {
                sorted[sorted.count - 1] = fields[index]
                if firstDuplicate == nil { firstDuplicate = last.name }
            } else {
                sorted.append(fields[index])
            }
        }
        fields = sorted
        isSorted = true
    }
}

/// The members of the map that represents a vector.
enum VectorForm {
    static let typeKey = "__type__"
    static let valueKey = "value"
    static let typeName = "__vector__"
}
