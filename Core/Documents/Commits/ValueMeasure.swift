import HearthModel

/// The cost of values in storage and in memory, summed in one walk.
struct ValueMeasure {
    /// In units of `CommitCost`: one per value, and one for this many bytes.
    var units = 0
    static let bytesPerUnit = 256
    /// Of transforms.
    var arrayOperations = 0

    /// Approximate allocation sizes.
    var bytes = 0
    /// A message that contains a document's name: a write, a transform.
    static let messageBytes = 512
    /// An array or a string that has an allocation of its own.
    static let allocationBytes = 32

    /// The memory of a string beyond the value that contains it. Short strings have no allocation.
    static func bytes(ofString string: String) -> Int {
        string.utf8.count > 15 ? allocationBytes + string.utf8.count : 0
    }

    mutating func add(_ map: MapValue) {
        bytes += Self.allocationBytes + map.fields.count * MemoryLayout<MapValue.Field>.stride
        for field in map.fields {
            bytes += Self.bytes(ofString: field.name)
            add(field.value)
        }
    }

    mutating func add(_ value: Value) {
        units += 1
        switch value {
        case .string(let string):
            units += string.utf8.count / Self.bytesPerUnit
            bytes += Self.bytes(ofString: string)
        case .reference(let name): bytes += Self.bytes(ofString: name)
        case .bytes(let content):
            units += content.count / Self.bytesPerUnit
            bytes += Self.allocationBytes + content.count
        case .vector(let elements):
            units += elements.count * 8 / Self.bytesPerUnit
            bytes += Self.allocationBytes + elements.count * 8
        case .array(let elements):
            bytes += Self.allocationBytes + elements.count * MemoryLayout<Value>.stride
            for element in elements { add(element) }
        case .map(let map): add(map)
        case .null, .boolean, .integer, .double, .timestamp, .geoPoint: break
        }
    }

    /// The bytes of elements that cost one unit each.
    mutating func addBytes(of elements: [Value]) {
        var measure = ValueMeasure()
        measure.add(.array(elements))
        bytes += measure.bytes
    }
}
