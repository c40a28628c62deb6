/// Equality of array elements for `arrayUnion` and `arrayRemove`: equivalent values are one element, `3` and `3.0`, `0`
/// and `-0.0`, any two NaN.
enum ElementSet {
    /// Up to this many elements are compared one by one with each element of the array; hashing the whole array costs
    /// more.
    private static let comparedMax = 8

    /// The array, followed by those of `elements` that it lacks, each once.
    static func appending(_ elements: [Value], to array: [Value]) -> [Value] {
        var result = array
        if elements.count <= comparedMax {
            for element in elements where !result.contains(where: { ValueOrder.equivalent($0, element) }) {
                result.append(element)
            }
            return result
        }
        result.reserveCapacity(array.count + elements.count)
        var present = Set(array.lazy.map(EquivalentValue.init))
        for element in elements where present.insert(EquivalentValue(element)).inserted { result.append(element) }
        return result
    }

    /// The array without all elements that are equivalent to one of `elements`.
    static func removing(_ elements: [Value], from array: [Value]) -> [Value] {
        if elements.count <= comparedMax {
            return array.filter { element in !elements.contains { ValueOrder.equivalent($0, element) } }
        }
        let removed = Set(elements.lazy.map(EquivalentValue.init))
        return array.filter { !removed.contains(EquivalentValue($0)) }
    }
}

/// A value as a key that equals all equivalent ones.
struct EquivalentValue: Hashable {
    private let value: Value

    init(_ value: Value) { self.value = value }

    static func == (lhs: EquivalentValue, rhs: EquivalentValue) -> Bool { ValueOrder.equivalent(lhs.value, rhs.value) }

    func hash(into hasher: inout Hasher) { Self.hash(value, into: &hasher) }

    private static func hash(_ value: Value, into hasher: inout Hasher) {
        hasher.combine(ValueOrder.typeClass(of: value).rawValue)
        switch value {
        case .null: break
        case .boolean(let flag): hasher.combine(flag)
        case .integer(let number): hasher.combine(number)
        case .double(let number): hash(number, into: &hasher)
        case .timestamp(let time): hasher.combine(time)
        case .string(let string): hash(string, into: &hasher)
        case .bytes(let bytes): hasher.combine(bytes)
        case .reference(let name):
            // Segments that are numbers are compared as numbers.
            for segment in name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
                let segment = String(Substring(segment))
                if let number = ResourcePath.numericID(segment) {
                    hasher.combine(number)
                } else {
                    hash(segment, into: &hasher)
                }
            }
        case .geoPoint(let point):
            hash(point.latitude, into: &hasher)
            hash(point.longitude, into: &hasher)
        case .array(let elements):
            hasher.combine(elements.count)
            for element in elements { hash(element, into: &hasher) }
        case .vector(let elements):
            hasher.combine(elements.count)
            for element in elements { hash(element, into: &hasher) }
        case .map(let map):
            hasher.combine(map.count)
            for field in map.fields {
                hash(field.name, into: &hasher)
                hash(field.value, into: &hasher)
            }
        }
    }

    /// Hashes a whole number within int64 as the integer that it equals.
    private static func hash(_ number: Double, into hasher: inout Hasher) {
        if let integer = Int64(exactly: number) {
            hasher.combine(integer)
        } else {
            hasher.combine(number.isNaN ? Double.nan.bitPattern : number.bitPattern)
        }
    }

    private static func hash(_ string: String, into hasher: inout Hasher) {
        var string = string
        string.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(UInt8(0xFF))
    }
}
